"""The board that measures a family: one that is free when the family's first job starts, and the same from then on."""

import math
from collections import Counter
from pathlib import Path

from warplog.core import locks
from warplog.core.errors import WarplogError, naming, say
from warplog.core.files import read_bytes, write_text
from warplog.machine import device
from warplog.records.campaign import Gpu

_LONGEST = 200  # of a UUID


def note_of(results: Path, gpu: str, family: str) -> Path:
    """Returns the file that names the board of a family."""
    return results / "boards" / gpu / f"{family}.txt"


def noted(note: Path) -> str:
    """Returns the UUID in a note; "" if there is no note, or a damaged one."""
    try:
        return read_bytes(note, _LONGEST, "").decode(errors="replace").strip()
    except WarplogError:
        return ""


def board_of(family: str, gpu: str, results: Path) -> Gpu:
    """Returns the board that measures a family, and uses it until this process ends.

    A family without a board of this machine gets a free one, which is noted before anything is measured; of free ones,
    that with the fewest families. If there is none, waits for one. A single board is neither waited for nor noted.

    Raises:
        WarplogError: This machine has no GPU or none of the model `gpu`, or no board gets free.
    """
    note = note_of(results, gpu, family)
    visible = boards_of(gpu)
    if len(visible) == 1 and not note.exists():
        locks.use(visible[0].uuid)
        return visible[0]
    boards = {board.uuid: board for board in visible}
    with naming(note):
        note.parent.mkdir(parents=True, exist_ok=True)
        # The jobs of a family may start at once. Each of them waits for a board for a limited time.
        with locks.locked(note.with_name(f".{family}.lock"), "", math.inf):
            former = noted(note)
            if former in boards or len(boards) == 1:
                taken = former if former in boards else next(iter(boards))
                locks.use(taken)
            else:
                families = Counter(map(noted, note.parent.glob("[!.]*.txt")))
                taken = locks.take_free(sorted(boards, key=families.__getitem__))
            if taken != former:
                write_text(note, taken)
    if former not in ("", taken):
        say(f"  {family}: {former} does not respond or is not visible; measuring on {taken}")
    return boards[taken]


def boards_of(gpu: str) -> list[Gpu]:
    """Returns the visible boards of a model.

    Raises:
        WarplogError: There is no GPU, or none of that model.
    """
    visible = device.boards()
    if not visible:
        raise WarplogError(
            f"no GPU: {device.why_not()}; run on a machine with a GPU, or read a recorded campaign with"
            " --config mode=recorded"
        )
    if not (boards := [board for board in visible if board.slug == gpu]):
        raise WarplogError(
            f"this machine has {visible[0].name} ({visible[0].slug}), but the campaign is for {gpu}; see config: gpu"
        )
    return boards
