"""Runs a task's cases in worker processes: a crash or hang only affects its case; finished cases survive a kill."""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from warplog.core.errors import WarplogError, say
from warplog.core.locks import PATIENCE_S, lock_path
from warplog.core.paths import PACKAGE
from warplog.core.process import Completed, end_process, explain_exit, minimal_env, run
from warplog.measure.journal import Journal, note
from warplog.measure.results import Result
from warplog.measure.task import CaseRun, Task
from warplog.measure.worker.main import BROKEN
from warplog.records import door
from warplog.records.fields import Status
from warplog.records.measured import Session

_START_S = 120.0  # a worker's start: imports, or CUDA context and module load
_WAIT_S = PATIENCE_S + 60.0  # the worker itself gives up earlier
_LOG_TAIL = 400
BREAKS: tuple[Status, ...] = ("crashed", "timeout")  # statuses after which a worker is replaced
Show = Callable[[Result], None]


def run_cases(
    task: Task, timeout_s: float, show: Show, stop_at: Sequence[Status] = (), stop_all: bool = False
) -> tuple[list[Result], Session]:
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
    killed: set[CaseRun] = set()
    while left := _left(task, journal, show, stop_at, stop_all):
        _one_worker(task, journal, left, timeout_s, show, killed)
    variants = {run.variant for run in task.runs}
    start_s = round(max(journal.start_s, 0.0) / len(variants), 3)
    return _done(task, journal), replace(journal.session, start_seconds=start_s)


def _open(task: Task) -> Journal:
    Path(task.folder).mkdir(parents=True, exist_ok=True)
    return Journal(task.journal, task.fingerprint(), task.runs)


def _done(task: Task, journal: Journal) -> list[Result]:
    return [journal.results[case] for case in task.runs if case in journal.results]


def _left(
    task: Task, journal: Journal, show: Show, stop_at: Sequence[Status], stop_all: bool
) -> list[CaseRun]:
    """Returns the cases still to run; cases after one with a status in `stop_at` become 'skipped'."""
    bad = {
        None if stop_all else result.run.group: result
        for result in reversed(_done(task, journal))
        if result.status in stop_at
    }
    left = [case for case in task.runs if case not in journal.results]
    for case in left:
        if ended := bad.get(None if stop_all else case.group):
            reason = f"not run, since case {ended.run.case} ended with status {ended.status}"
            journal.results[case] = Result(run=case, status="skipped", reason=reason)
            show(journal.results[case])
    return [] if task.is_over() else [case for case in left if case not in journal.results]


def finished(task: Task) -> dict[CaseRun, Result]:
    """Returns the results that an interrupted run of this task left in its journal."""
    return _open(task).results


def discard(folder: Path) -> None:
    """Removes the files of a task, and its folder if nothing else is in it."""
    for name in ("task.json", "journal.jsonl", "worker.log"):
        (folder / name).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _one_worker(
    task: Task, journal: Journal, runs: list[CaseRun], timeout_s: float, show: Show, killed: set[CaseRun]
) -> None:
    """Runs one worker until it ends, dies or exceeds the time limit of a case.

    A case during which the worker is killed for the first time is added to `killed` and gets no result.
    """
    file = Path(task.folder) / "task.json"
    door.write(file, replace(task, runs=tuple(runs)))
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
    log = file.with_name("worker.log")
    longest = _START_S + _WAIT_S + timeout_s * len(runs) * 1.5
    try:
        completed = run(command, timeout_s=longest, env=environment(task.environment), log=log, stop=overdue)
    finally:
        show_new()
        journal.end()
        end_process(journal.pid, str(file))

    finished_now = [journal.results[case] for case in runs if case in journal.results]
    if len(finished_now) == len(runs) or (completed.ok and task.is_over()):
        return
    if _was_killed(completed) and journal.running is not None and journal.running not in killed:
        killed.add(journal.running)
        say(f"{file.parent.name}: the worker was killed; {journal.running} is tried again")
    elif journal.running is not None and completed.returncode != BROKEN:
        note(journal.path, _post_mortem(journal.running, completed, timeout_s))
        show_new()
    elif not any(completed.ok or result.status == "crashed" for result in finished_now):
        # Otherwise the worker ended itself after a device error, and the next one continues.
        how, what = explain_exit(completed), next(iter(task.libraries.values()))
        raise WarplogError(f"{task.work.mode} {what}: the worker failed ({how}): {_tail(completed)}")


def _was_killed(completed: Completed) -> bool:
    """Returns whether the worker got SIGKILL, from a user or for lack of memory, and not for its time limit."""
    return completed.returncode == -signal.SIGKILL and not completed.timed_out


def _post_mortem(case: CaseRun, completed: Completed, timeout_s: float) -> Result:
    if completed.timed_out:
        return Result(run=case, status="timeout", reason=f"no answer within {timeout_s:g} s")
    reason = ": ".join(filter(None, (explain_exit(completed), _tail(completed))))
    return Result(run=case, status="crashed", reason=reason)


def _tail(completed: Completed) -> str:
    return " ".join(completed.output_tail.split())[-_LOG_TAIL:]


def environment(further: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a worker: the minimal one, what it needs to run, and further variables."""
    package = str(PACKAGE.parent)
    inherited = os.environ.get("PYTHONPATH", "")
    # CuPy compiles its CUB reductions for seconds per shape and type, but not its plain reductions.
    fixed = {"PYTHONUNBUFFERED": "1", "CUPY_ACCELERATORS": ""}
    return minimal_env({"PYTHONPATH": f"{package}:{inherited}".rstrip(":"), **fixed, **further})
