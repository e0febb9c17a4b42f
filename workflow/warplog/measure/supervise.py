"""Runs a task's cases in worker processes: a crash or hang only affects its case; finished cases survive a kill."""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplog.catalog.family import load_family
from warplog.core.errors import WarplogError, say
from warplog.core.hashing import sha256_file, sha256_of
from warplog.core.locks import PATIENCE_S, lock_path
from warplog.core.paths import PACKAGE
from warplog.core.process import Completed, end_process, explain_exit, minimal_env, run
from warplog.core.records import Record, write_json
from warplog.measure.journal import Journal, note
from warplog.measure.worker.main import BROKEN, parts_of, process_of

_START_S = 120.0  # a worker's start: imports, or CUDA context and module load
_WAIT_S = PATIENCE_S + 60.0  # the worker itself gives up earlier
_LOG_TAIL = 400


@dataclass(frozen=True)
class Task:
    """The work of one worker process; most fields are passed to it as TASK.json (see worker/main.py).

    Attributes:
        mode: check, time, sustain, capture, timeline, sanitize or tune.
        backend: array library of the worker, see worker.backend.
        library: the compiled launcher of all cases that are not in `libraries`.
        library_sha256: hash of all libraries of the task.
        cases: names of the family's cases. If the task is for several variants, `[<process>/]<variant>:<case>`; in
            mode tune, names of settings. See `group_of` for the groups of cases.
        folder: holds the task, its journal and its log; the journal lets the next run resume.
        settings: settings of the mode, passed to the worker.
        timer: the compiled timing core; None if nothing is timed.
        wrapper: command to run the worker under, such as a profiler.
        environment: environment variables besides the minimal ones, such as the visible GPU.
        memory: the arrays in host memory by argument name, for each group of cases ("" if there are no groups).
        libraries: the compiled launcher by case.
        deadline: time.monotonic(), which all processes share, after which no case starts; None for no deadline.
        gpu_lock: UUID of the GPU, which the worker locks after it has started up; "" for no lock.
    """

    mode: str
    backend: str
    family_file: Path
    library: Path
    library_sha256: str
    cases: tuple[str, ...]
    folder: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    timer: Path | None = None
    wrapper: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    memory: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: {"": {}})
    libraries: Mapping[str, Path] = field(default_factory=dict)
    deadline: float | None = None
    gpu_lock: str = ""

    def is_over(self) -> bool:
        """Returns whether the deadline has passed, so that no further case may start."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def fingerprint(self) -> str:
        """Returns the hash of everything that a case's result depends on, the board included, but not which cases."""
        contract = load_family(self.family_file).contract()
        reference = sha256_file(self.family_file.with_name("reference.py"))
        memory = {group: dict(arrays) for group, arrays in self.memory.items()}
        made_by = self.mode, self.backend, self.library_sha256, dict(self.settings), self.gpu_lock
        return sha256_of(*made_by, contract, reference, memory)


def run_cases(
    task: Task,
    timeout_s: float,
    show: Callable[[Record], None],
    stop_at: Sequence[str] = (),
    stop_all: bool = False,
) -> tuple[list[Record], Record]:
    """Runs all cases; returns their results in order, and facts about the worker's session.

    Cases that an interrupted run finished are taken from its journal. A worker that dies is replaced; the case
    that it was running gets the status 'crashed' or 'timeout'. After `kill -9`, which is not the kernel's doing, the
    case is tried once more. Cases that had not started at the task's deadline are missing from the results.

    Args:
        task: the work.
        timeout_s: time limit per case in seconds.
        show: called with each new result.
        stop_at: statuses after which the remaining cases of the group are skipped.
        stop_all: skip the remaining cases of all groups instead.

    Raises:
        WarplogError: The worker failed for a reason other than a kernel.
    """
    journal = _open(task)
    killed: set[str] = set()
    while left := _left(task, journal, show, stop_at, stop_all):
        _one_worker(task, journal, left, timeout_s, show, killed)
    variants = {parts_of(case)[0] for case in task.cases}
    results = [journal.results[c] for c in task.cases if c in journal.results]
    return results, journal.session | {"start_seconds": round(max(journal.start_s, 0.0) / len(variants), 3)}


def _open(task: Task) -> Journal:
    task.folder.mkdir(parents=True, exist_ok=True)
    return Journal(task.folder / "journal.jsonl", task.fingerprint(), task.cases)


def _left(
    task: Task, journal: Journal, show: Callable[[Record], None], stop_at: Sequence[str], stop_all: bool
) -> list[str]:
    """Returns the cases still to run; cases after one with a status in `stop_at` become 'skipped'."""
    done = [journal.results[c] for c in task.cases if c in journal.results]
    bad = {"" if stop_all else group_of(r["case"]): r for r in reversed(done) if r["status"] in stop_at}
    for case in task.cases:
        if case not in journal.results and (ended := bad.get("" if stop_all else group_of(case))):
            reason = f"not run, since case {parts_of(ended['case'])[1]} ended with status {ended['status']}"
            journal.results[case] = {"case": case, "status": "skipped", "reason": reason}
            show(journal.results[case])
    return [] if task.is_over() else [c for c in task.cases if c not in journal.results]


def group_of(name: str) -> str:
    """Returns what a failure ends: the other cases of the variant, or the same case in other processes."""
    return name.partition("/")[2] if process_of(name) else parts_of(name)[0]


def finished(task: Task) -> dict[str, Record]:
    """Returns the results that an interrupted run of this task left in its journal, by case."""
    return _open(task).results


def discard(task_folder: Path) -> None:
    """Removes a task's files, and its folder if nothing else is in it."""
    for path in (task_folder / "task.json", task_folder / "journal.jsonl", task_folder / "worker.log"):
        path.unlink(missing_ok=True)
    if task_folder.is_dir() and not any(task_folder.iterdir()):
        task_folder.rmdir()


def _one_worker(
    task: Task,
    journal: Journal,
    cases: list[str],
    timeout_s: float,
    show: Callable[[Record], None],
    killed: set[str],
) -> None:
    """Runs one worker until it ends, dies or exceeds the time limit of a case.

    A case during which the worker is killed for the first time is added to `killed` and gets no result.
    """
    file = task.folder / "task.json"
    write_json(file, _task_json(task, journal, cases))
    journal.begin()

    def show_new() -> None:
        for result in journal.read():
            show(result)

    def overdue() -> bool:
        show_new()
        quiet_s = time.monotonic() - journal.last_note
        if journal.waiting:
            journal.say_waiting(quiet_s, lock_path(task.gpu_lock))
            return quiet_s > _WAIT_S
        return quiet_s > (timeout_s if journal.running is not None else _START_S)

    command = [*task.wrapper, sys.executable, "-m", "warplog.measure.worker.main", str(file)]
    log = task.folder / "worker.log"
    longest = _START_S + _WAIT_S + timeout_s * len(cases) * 1.5
    try:
        completed = run(command, timeout_s=longest, env=_environment(task), log=log, stop=overdue)
    finally:
        show_new()
        journal.end()
        end_process(journal.pid, str(file))

    finished_now = [journal.results[c] for c in cases if c in journal.results]
    if len(finished_now) == len(cases) or (completed.ok and task.is_over()):
        return
    if _was_killed(completed) and journal.running is not None and journal.running not in killed:
        killed.add(journal.running)
        say(f"{task.folder.name}: the worker was killed; {journal.running} is tried again")
    elif journal.running is not None and completed.returncode != BROKEN:
        note(journal.path, {"result": _post_mortem(journal.running, completed, timeout_s)})
        show_new()
    elif not any(completed.ok or result["status"] == "crashed" for result in finished_now):
        # Otherwise the worker ended itself after a device error, and the next one continues.
        how = explain_exit(completed)
        raise WarplogError(f"{task.mode} {task.library}: the worker failed ({how}): {_tail(completed)}")


def _was_killed(completed: Completed) -> bool:
    """Returns whether the worker got SIGKILL, from a user or for lack of memory, and not for its time limit."""
    return completed.returncode == -signal.SIGKILL and not completed.timed_out


def _post_mortem(case: str, completed: Completed, timeout_s: float) -> Record:
    if completed.timed_out:
        return {"case": case, "status": "timeout", "reason": f"no answer within {timeout_s:g} s"}
    tail = _tail(completed)
    return {
        "case": case,
        "status": "crashed",
        "reason": explain_exit(completed) + (f": {tail}" if tail else ""),
    }


def _tail(completed: Completed) -> str:
    return " ".join(completed.output_tail.split())[-_LOG_TAIL:]


def _task_json(task: Task, journal: Journal, cases: list[str]) -> Record:
    return {
        "mode": task.mode,
        "backend": task.backend,
        "family_file": str(task.family_file),
        "library": str(task.library),
        "libraries": {case: str(path) for case, path in task.libraries.items() if case in cases},
        "deadline": task.deadline,
        "gpu_lock": task.gpu_lock,
        "wrapped": bool(task.wrapper),
        "timer": str(task.timer) if task.timer else None,
        "cases": cases,
        "journal": str(journal.path),
        "settings": dict(task.settings),
        "memory": {group: dict(arrays) for group, arrays in task.memory.items()},
    }


def _environment(task: Task) -> dict[str, str]:
    package = str(PACKAGE.parent)
    inherited = os.environ.get("PYTHONPATH", "")
    # CuPy compiles its CUB reductions for seconds per shape and type, but not its plain reductions.
    fixed = {"PYTHONUNBUFFERED": "1", "CUPY_ACCELERATORS": ""}
    return minimal_env({"PYTHONPATH": f"{package}:{inherited}".rstrip(":"), **fixed, **task.environment})
