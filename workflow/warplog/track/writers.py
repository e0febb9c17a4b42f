"""Which process writes a run, and whether it has died: by its id on its own machine, elsewhere by the run's age."""

import contextlib
import datetime
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from warplog.core.process import is_running
from warplog.track.versions import LOGGED_AT

if TYPE_CHECKING:
    from mlflow.entities import Run as StoredRun

WRITER = "warplog.writer"
_MOST_DIGITS = 10
_SURELY_DEAD = datetime.timedelta(hours=1)  # a run is written in seconds, one with large files in minutes


def this_process() -> str:
    """Returns machine/id/start, which tell this process from all others; '' if the machine is unknown."""
    return f"{_machine()}/{os.getpid()}/{_start(os.getpid())}" if _machine() else ""


def has_died(run: "StoredRun") -> bool:
    """Returns whether the process that began to write a run is gone, or on another machine began over an hour ago."""
    machine, pid, start = [*run.data.tags.get(WRITER, "").rsplit("/", 2), "", ""][:3]
    is_number = pid.isdecimal() and len(pid) < _MOST_DIGITS and start.isdecimal()
    if machine == _machine() and is_number:
        return _start(int(pid)) not in (start, None)
    try:
        begun = datetime.datetime.fromisoformat(run.data.tags.get(LOGGED_AT, ""))
    except ValueError:
        return True
    return datetime.datetime.now(datetime.UTC) - begun > _SURELY_DEAD


@cache
def _machine() -> str:
    """Returns the boot and the namespace within which a process id belongs to one process; '' if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _start(pid: int) -> str | None:
    """Returns when a process started, in ticks since the boot; '' if it is gone, None if its start is hidden."""
    with contextlib.suppress(OSError):
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state == "Z" else rest[18]
    return None if is_running(pid) else ""
