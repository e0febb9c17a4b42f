"""Runs a task's cases in worker processes: a crash costs one case, a hang its time limit, a kill nothing done."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplog.core.errors import WarplogError
from warplog.core.locks import PATIENCE_S
from warplog.core.paths import PACKAGE
from warplog.core.process import Completed, end_process, explain_exit, minimal_env, run
from warplog.core.records import Record, sha256_file, sha256_of, write_json
from warplog.measure.journal import Journal, note
from warplog.measure.worker.main import BROKEN

_START_S = 120.0  # a worker's start: imports, or CUDA context and module load
_WAIT_S = PATIENCE_S + 60.0  # the worker itself gives up before
_LOG_TAIL = 400


@dataclass(frozen=True)
class Task:
    """What a worker is asked to do; the fields are those of TASK.json (see gpu/worker.py).

    Attributes:
        folder: where the task, its journal and its log lie; the journal lets the next run resume.
        wrapper: a command to run the worker under (a profiler).
        environment: variables for the worker beside the minimal ones (which GPU it sees).
        cases: names of the family's cases; with `libraries` `<group>:<case>` (a variant's), or a setting's name.
        libraries: the library of each case, where one task is for several; `library_sha256` is of all of them.
        deadline: no case begins after this moment of time.monotonic(), the same clock in all processes.
        gpu_lock: UUID of the GPU, which the worker has to itself while it works; it starts beside another's work.
        memory: for each group of cases ("" without groups) the arrays in host memory, by the argument's name.
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
        """Whether no further case may begin."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def fingerprint(self) -> str:
        """Of everything that a finished case's result depends on; the choice of cases is not part of it."""
        contract = [sha256_file(self.family_file), sha256_file(self.family_file.with_name("reference.py"))]
        return sha256_of(self.mode, self.backend, self.library_sha256, dict(self.settings), contract)


def run_cases(
    task: Task,
    timeout_s: float,
    say: Callable[[Record], None],
    stop_at: Sequence[str] = (),
    stop_all: bool = False,
) -> tuple[list[Record], Record]:
    """Results of all cases, in order, and what the worker noted of its session.

    Cases that an interrupted run finished are taken from its journal. A worker that dies is replaced, and
    the case that killed it gets 'crashed' or 'timeout'. A status in `stop_at` skips the cases of its group
    (`<group>:<case>`) that are behind it, with `stop_all` all cases.
    Cases that had not begun at the task's deadline are left out.

    Raises:
        WarplogError: the worker failed for a reason that is not the kernel's.
    """
    journal = _open(task)
    while left := _left(task, journal, say, stop_at, stop_all):
        _one_worker(task, journal, left, timeout_s, say)
    groups = {group_of(case) for case in task.cases}
    results = [journal.results[c] for c in task.cases if c in journal.results]
    return results, journal.session | {"start_seconds": round(max(journal.start_s, 0.0) / len(groups), 3)}


def _open(task: Task) -> Journal:
    task.folder.mkdir(parents=True, exist_ok=True)
    return Journal(task.folder / "journal.jsonl", task.fingerprint(), task.cases)


def _left(
    task: Task, journal: Journal, say: Callable[[Record], None], stop_at: Sequence[str], stop_all: bool
) -> list[str]:
    """The cases still to run; those that a bad one stops become 'skipped'."""
    done = [journal.results[c] for c in task.cases if c in journal.results]
    bad = {"" if stop_all else group_of(r["case"]): r for r in reversed(done) if r["status"] in stop_at}
    for case in task.cases:
        if case not in journal.results and (ended := bad.get("" if stop_all else group_of(case))):
            reason = f"not tried after {ended['status']} in case {ended['case'].rpartition(':')[2]}"
            journal.results[case] = {"case": case, "status": "skipped", "reason": reason}
            say(journal.results[case])
    return [] if task.is_over() else [c for c in task.cases if c not in journal.results]


def group_of(case: str) -> str:
    """The group of `<group>:<case>`; '' for a case alone."""
    return case.rpartition(":")[0]


def finished(task: Task) -> dict[str, Record]:
    """What an interrupted run of this task has finished, by case."""
    return _open(task).results


def discard(task_folder: Path) -> None:
    """Removes a task's working files once its record is written."""
    for path in (task_folder / "task.json", task_folder / "journal.jsonl", task_folder / "worker.log"):
        path.unlink(missing_ok=True)
    if task_folder.is_dir() and not any(task_folder.iterdir()):
        task_folder.rmdir()


def _one_worker(
    task: Task, journal: Journal, cases: list[str], timeout_s: float, say: Callable[[Record], None]
) -> None:
    """Runs one worker until it ends, dies, or exceeds a case's time."""
    file = task.folder / "task.json"
    write_json(file, _task_json(task, journal, cases))
    journal.begin()

    def tell() -> None:
        for result in journal.read():
            say(result)

    def overdue() -> bool:
        tell()
        quiet_s = time.monotonic() - journal.last_note
        if journal.waiting:
            journal.say_waiting(quiet_s)
            return quiet_s > _WAIT_S
        return quiet_s > (timeout_s if journal.running is not None else _START_S)

    command = [*task.wrapper, sys.executable, "-m", "warplog.measure.worker.main", str(file)]
    log = task.folder / "worker.log"
    longest = _START_S + _WAIT_S + timeout_s * len(cases) * 1.5
    try:
        completed = run(command, timeout_s=longest, env=_environment(task), log=log, stop=overdue)
    finally:
        tell()
        journal.end()
        end_process(journal.pid, str(file))

    finished_now = [journal.results[c] for c in cases if c in journal.results]
    if len(finished_now) == len(cases) or (completed.ok and task.is_over()):
        return
    if journal.running is not None and completed.returncode != BROKEN:
        note(journal.path, {"result": _post_mortem(journal.running, completed, timeout_s)})
        tell()
    elif not any(completed.ok or result["status"] == "crashed" for result in finished_now):
        # Else the worker ended itself after a device error, and the next one goes on.
        how = explain_exit(completed)
        raise WarplogError(f"{task.mode} {task.library}: the worker failed ({how}): {_tail(completed)}")


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
    # CuPy's CUB reductions take seconds to compile for each new shape and type; its plain ones do not.
    ours = {"PYTHONUNBUFFERED": "1", "CUPY_ACCELERATORS": ""}
    return minimal_env({"PYTHONPATH": f"{package}:{inherited}".rstrip(":"), **ours, **task.environment})
