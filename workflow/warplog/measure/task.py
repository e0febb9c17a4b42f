"""The work of a worker process, as TASK.json holds it, and the identity of what it runs."""

import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import field

from warplog.catalog.family import load_family
from warplog.core.hashing import sha256_file, sha256_of
from warplog.records import door
from warplog.records.config import TimelineSettings, TimeSettings
from warplog.records.fields import CaseName, Count, Frozen, Sha256, Tool


class CaseRun(Frozen, frozen=True, kw_only=True):
    """One case of one variant in one process; in mode tune, one setting in one pass.

    Attributes:
        process: number of the fresh process, from 1; 0 if all cases share a process.
    """

    variant: str
    case: CaseName
    process: Count = 0

    @property
    def group(self) -> tuple[str, str]:
        """What a failure ends: the other cases of the variant, or the same case in other processes."""
        return self.variant, self.case if self.process else ""

    def __str__(self) -> str:
        """For display and for the ranges that profilers show: `warptile:4096`, or `2/warptile:4096` in process 2."""
        return f"{self.process}/{self.variant}:{self.case}" if self.process else f"{self.variant}:{self.case}"


class _Work(Frozen, tag_field="mode", frozen=True, kw_only=True):
    @property
    def mode(self) -> str:
        """What the worker does, in a word."""
        return str(self.__struct_config__.tag)


class CheckWork(_Work, tag="check", frozen=True, kw_only=True):
    """Checks the results in rounds of new inputs."""

    rounds: Count


class TimeWork(_Work, tag="time", frozen=True, kw_only=True):
    """Times at rest; the seeds of the arrays' addresses follow from `seed`."""

    settings: TimeSettings
    seed: Count


class SustainWork(TimeWork, tag="sustain", frozen=True, kw_only=True):
    """Times back to back."""


class CaptureWork(_Work, tag="capture", frozen=True, kw_only=True):
    """Launches for a profiler; under nsys, `launches` times."""

    tool: Tool
    launches: Count


class TimelineWork(_Work, tag="timeline", frozen=True, kw_only=True):
    """Captures builds with marks: by variant, the library, and the hashes of all of them."""

    settings: TimelineSettings
    marked: Mapping[str, str]
    marked_sha256: tuple[Sha256, ...]


class AccessWork(_Work, tag="accesses", frozen=True, kw_only=True):
    """Launches once for the tracer or, with `tracer` "", for ncu.

    Attributes:
        tracer: the library, and its hash.
        most_entries: what the trace of a launch holds.
    """

    tracer: str = ""
    tracer_sha256: Sha256 = ""
    most_entries: Count = 0


class SanitizeWork(_Work, tag="sanitize", frozen=True, kw_only=True):
    """Launches once for a tool of compute-sanitizer."""

    tool: str


class CompileWork(_Work, tag="compile", frozen=True, kw_only=True):
    """Launches a Python variant, which compiles it."""


class TuneWork(_Work, tag="tune", frozen=True, kw_only=True):
    """Checks settings of a search in `rounds`, and times them."""

    check_cases: tuple[CaseName, ...]
    rounds: Count
    cases: tuple[CaseName, ...]
    time: TimeSettings


Work = (
    CheckWork
    | TimeWork
    | SustainWork
    | CaptureWork
    | TimelineWork
    | AccessWork
    | SanitizeWork
    | CompileWork
    | TuneWork
)


class Task(Frozen, frozen=True, kw_only=True):
    """The work of one worker process. Files are paths as text, since JSON has no others.

    Attributes:
        backend: array library of the worker, see worker.backend.
        libraries: the compiled launcher, or the module, by variant; in mode tune, by setting.
        library_sha256: hash of all libraries.
        runs: what to run, in order.
        folder: holds the task, its journal and its log; the journal lets the next run resume.
        memory: the kind of memory of arrays that are not in device memory, by argument name, by variant.
        timer: the compiled timing core; "" if nothing is timed.
        default_mhz: the SM clock without a limit, which the timing core waits for.
        wrapper: command to run the worker under, such as a profiler.
        environment: environment variables besides the minimal ones, such as the visible GPU.
        deadline: time.monotonic(), which all processes share, after which no case starts; None for no deadline.
        gpu_lock: UUID of the GPU, which the worker locks after it has started up; "" for no lock.
    """

    work: Work
    backend: str
    family_file: str
    libraries: Mapping[str, str]
    library_sha256: Sha256
    runs: tuple[CaseRun, ...]
    folder: str
    memory: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    timer: str = ""
    default_mhz: float = 0.0
    wrapper: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    deadline: float | None = None
    gpu_lock: str = ""

    @property
    def journal(self) -> Path:
        """The file of the journal."""
        return Path(self.folder) / "journal.jsonl"

    def is_over(self) -> bool:
        """Returns whether the deadline has passed, so that no further case may start."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def fingerprint(self) -> str:
        """Returns the hash of everything that a case's result depends on, the board included, but not which cases."""
        family_file = Path(self.family_file)
        contract, reference = load_family(family_file).contract(), family_file.with_name("reference.py")
        made_by = self.backend, self.library_sha256, self.gpu_lock, self.default_mhz, door.plain(self.memory)
        return sha256_of(door.plain(self.work), *made_by, contract, sha256_file(reference))
