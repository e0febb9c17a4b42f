"""SIGTERM always ends a run, also if Snakemake's scheduler hangs, and never signals the group of whoever started it."""

import ctypes
import math
import os
import signal
import time
from _thread import start_new_thread
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_POLL_S = 0.2
_PR_SET_CHILD_SUBREAPER = 36


def bound_sigterm(local: bool, patience_s: float = 20.0) -> None:
    """Lets the first SIGTERM end this run after its running jobs, and a second one end these jobs as well.

    If Snakemake has not ended `patience_s` seconds after its last job did, this process exits as after SIGTERM.
    Snakemake must have installed its own handler, which takes a lock: in the main thread, which may hold that lock
    already, it would wait for ever, so it is called in another thread.

    Args:
        local: whether the jobs run on this machine. Those of a cluster are awaited, or cancelled by the second SIGTERM.
    """
    # What a killed job leaves behind becomes a child of this process, and is found.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    snakemake = signal.getsignal(signal.SIGTERM)
    if callable(snakemake):
        signal.signal(signal.SIGTERM, _Ending(snakemake, local, patience_s).ask)


@dataclass
class _Ending:
    snakemake: Callable[..., Any]
    local: bool
    patience_s: float
    asked: int = 0

    def ask(self, number: int, _frame: object) -> None:
        """Handles SIGTERM."""
        self.asked += 1
        if self.asked == 1:
            start_new_thread(self.snakemake, (number, None))
            _say("ending after the running jobs; a second SIGTERM ends these too")
        if self.asked == (1 if self.local else 2):
            start_new_thread(self._watch, ())
        if self.asked == 2:
            raise KeyboardInterrupt  # Snakemake then cancels its jobs, those of a cluster too

    def _watch(self) -> None:
        """Ends this process once no job has run for `patience_s`; ends the jobs themselves after a second SIGTERM."""
        last_seen = time.monotonic()
        kill_after = math.inf
        while (now := time.monotonic()) - last_seen < self.patience_s:
            jobs, started = _jobs_and_all()
            if self.asked > 1 and kill_after == math.inf:
                kill_after = now + self.patience_s
                _send(signal.SIGTERM, jobs)  # they end what they started, and keep its results
            if now > kill_after:
                _send(signal.SIGKILL, started)
            elif jobs:
                last_seen = now
            time.sleep(_POLL_S)
        _send(signal.SIGKILL, _jobs_and_all()[1])
        hung = f"hung for {self.patience_s:g} s after its last job and was ended"
        _say(f"error: Snakemake {hung}; run again to resume")
        os._exit(128 + signal.SIGTERM)


def _jobs_and_all() -> tuple[list[int], list[int]]:
    """Returns the jobs of this process, and all that it and they started, in sessions of their own too."""
    me, session = os.getpid(), os.getsid(0)
    children: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, _group, its = stat.read_bytes().rpartition(b")")[2].split()[:4]
            if state not in (b"Z", b"X"):
                children[int(parent)].append((int(stat.parent.name), int(its)))
    processes = [me]
    for pid in processes:
        processes += [child for child, _ in children[pid]]
    return [pid for pid, its in children[me] if its == session], processes[1:]


def _send(number: signal.Signals, processes: list[int]) -> None:
    for pid in processes:
        with suppress(OSError):
            os.kill(pid, number)


def _say(line: str) -> None:
    """Prints a line to standard error without the lock of `sys.stderr`, which a hanging thread may hold."""
    with suppress(OSError):
        os.write(2, f"{line}\n".encode())
