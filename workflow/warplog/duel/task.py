"""The work of a duel's processes, as TASK.json holds it, and the lines in which they say what they found."""

import json
from collections.abc import Mapping
from pathlib import Path

from warplog.catalog.family import Family, Variant, load_family
from warplog.records import door
from warplog.records.fields import CaseName, Count, Frozen, Status
from warplog.records.measured import Session
from warplog.records.requested.duel import Regime, Window


class SideTask(Frozen, frozen=True, kw_only=True):
    """One side.

    Attributes:
        file: what is loaded: the library, or the module of a Python variant.
        libraries: shared libraries that it links; they are loaded first, so that no other one of the name serves it.
        memory: kinds of memory of its arrays, by argument name.
    """

    family_file: str
    variant: str
    file: str
    libraries: tuple[str, ...] = ()
    memory: Mapping[str, str]

    def load(self) -> tuple[Family, Variant]:
        """Returns the family and the variant."""
        family = load_family(Path(self.family_file))
        return family, family.variant(self.variant)


class DuelTask(Frozen, frozen=True, kw_only=True):
    """A duel.

    Attributes:
        backend: name of the array library, see warplog.measure.worker.backend.
        sides: A and B.
        apart: whether each side runs in a process of its own.
        timer: the compiled timing core.
        default_mhz: the SM clock without a limit.
        gpu_lock: UUID of the GPU, which is locked during the duel.
        seed: for inputs, addresses and the order of the turns.
        window_s: seconds of turns at rest in each process.
        margin, looks: see warplog.duel.evidence.Rule.
        sustained: whether the sides also duel back to back, if a limit acts.
        journal: file for what is found.
    """

    backend: str
    sides: tuple[SideTask, SideTask]
    apart: bool
    case: CaseName
    timer: str
    default_mhz: float
    gpu_lock: str
    seed: Count
    window_s: float
    margin: float
    looks: Count
    sustained: bool
    journal: str


class _Note(Frozen, tag_field="note", frozen=True, kw_only=True):
    """A line of the journal."""


class Doing(_Note, tag="doing", frozen=True, kw_only=True):
    """What a process does next, in words that are shown, and its number."""

    what: str
    process: Count


class Found(_Note, tag="found", frozen=True, kw_only=True):
    """What a process has found."""

    regime: Regime
    window: Window


class Failed(_Note, tag="failed", frozen=True, kw_only=True):
    """Why the duel ended without a verdict; the reason names the side, if it is known."""

    status: Status
    reason: str


class Opened(_Note, tag="opened", frozen=True, kw_only=True):
    """Versions that the processes use."""

    session: Session


Note = Doing | Found | Failed | Opened


class Asked(Frozen, frozen=True, kw_only=True):
    """A window that a process which stays is asked for."""

    task: DuelTask
    process: Count


class Turned(Frozen, frozen=True, kw_only=True):
    """A turn of a side in a process of its own: the mean of its launches, as the fields of `Turn` and `Taken` say."""

    us: float
    sm_mhz: float = 0.0
    blocked: bool = True
    step_us: float = 0.0
    discarded: Count = 0
    held: bool = False
    pause_us: float = 0.0


def note(journal: str, entry: Note) -> None:
    """Appends a line to the journal."""
    with Path(journal).open("a", encoding="utf-8") as file:
        file.write(door.as_json(entry) + "\n")


def notes(journal: Path, skip: int = 0) -> list[Note]:
    """Returns the lines of the journal after the first `skip`; an unfinished last line is left for later."""
    text = journal.read_text(encoding="utf-8") if journal.is_file() else ""
    lines = text.split("\n")[skip:-1]
    return [door.decode(json.loads(line), Note, str(journal)) for line in lines]  # type: ignore[arg-type]  # a union
