"""The worker process: runs the cases of a task one after the other and notes each result in the journal.

    python -m warplog.measure.worker.main TASK.json

A case that destroys the CUDA context or kills the process ends the worker; the supervisor starts a new one for
the remaining cases. Standard output and error go to the supervisor's log.
"""

import contextlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from warplog.catalog.contract import Case
from warplog.catalog.family import Family, load_family
from warplog.core.locks import hold
from warplog.core.process import die_with_parent
from warplog.machine.nvml import kept_loaded
from warplog.measure.journal import note
from warplog.measure.worker.backend import (
    Backend,
    CupyBackend,
    DriverBackend,
    Launcher,
    LaunchFailed,
    classify,
    import_arrays,
    make_backend,
)
from warplog.measure.worker.case_data import SHARED_DATA, CaseData
from warplog.measure.worker.problem import Problem

CONTEXT_LOST = 70  # exit status after a device error, after which nothing can run in this process
BROKEN = 71  # exit status if warplog, a reference.py or the installation failed, not the kernel


def main(task_file: Path) -> int:
    """Runs the task; returns 0 if every case was tried, or the deadline was reached."""
    task = json.loads(task_file.read_text())
    note(Path(task["journal"]), {"pid": os.getpid()})
    # The signal is sent when the parent thread ends, and that of a profiler may be short-lived.
    if not task["wrapped"]:
        die_with_parent(signal.SIGKILL)
    family = load_family(Path(task["family_file"]))
    import_arrays(task["backend"])
    # Timing watches the clock of every case; the other modes do not use NVML.
    watching = kept_loaded() if task["timer"] else contextlib.nullcontext()
    with _alone(task["gpu_lock"], Path(task["journal"])), watching:
        return _work(task, family)


@contextlib.contextmanager
def _alone(uuid: str, journal: Path) -> Iterator[None]:
    """Locks the GPU with this UUID, if any; the CUDA context is created and the GPU is used only inside."""
    if not uuid:
        yield
        return
    note(journal, {"waiting": True})
    with hold(uuid):
        note(journal, {"waiting": False, "at": time.monotonic()})
        yield


def _work(task: dict[str, Any], family: Family) -> int:
    backend = make_backend(task["backend"])
    journal = Path(task["journal"])
    runner = _Runner(task, family, backend)
    note(journal, {"session": {**backend.facts(), **runner.facts()}})
    for name in task["cases"]:
        if task["deadline"] is not None and time.monotonic() >= task["deadline"]:
            break
        note(journal, {"begin": name})
        begin = time.monotonic()
        result = runner.run(name)
        note(journal, {"result": {"case": name, **result, "seconds": round(time.monotonic() - begin, 3)}})
        if result["status"] == "crashed":
            return CONTEXT_LOST
    return 0


class _Runner:
    """Runs cases and keeps what they share: launchers, timing core, inputs."""

    def __init__(self, task: dict[str, Any], family: Family, backend: Backend) -> None:
        self._task = task
        self._backend = backend
        self._family = family
        self._timer: Any = None
        self._tuner: Any = None
        if task["timer"]:
            from warplog.measure.worker.timer import Timer

            self._timer = Timer(Path(task["timer"]), family.measuring.timing == "stream")
        if task["mode"] == "tune":
            from warplog.measure.worker.tune_setting import Tuner

            self._tuner = Tuner(backend, self._timer, family, task["settings"], task["memory"][""])
        self._launchers: dict[str, Launcher] = {}
        self._shapes: list[tuple[int, ...]] = []
        self._shared = CaseData(backend.xp, family) if task["mode"] in SHARED_DATA else None

    def facts(self) -> dict[str, Any]:
        """Returns what the session adds to the backend's facts: the empty interval of the timing core."""
        return {"empty_us": self._timer.empty_us} if self._timer else {}

    def run(self, name: str) -> dict[str, Any]:
        """Runs one case or setting; a device error is a result with status and reason."""
        try:
            if self._tuner:
                result: dict[str, Any] = self._tuner.run(Path(self._task["libraries"][name]))
                return result
            return self._run(name)
        except LaunchFailed as failed:
            return {"status": failed.status, "reason": failed.reason}
        except Exception as error:
            if type(error).__name__ not in (
                "CUDARuntimeError",
                "CUDADriverError",
                "OutOfMemoryError",
                "MemoryError",
            ):
                raise
            status, reason = classify(error)
            return {"status": status, "reason": reason}
        finally:
            if isinstance(self._backend, CupyBackend):
                self._backend.xp.get_default_memory_pool().free_all_blocks()

    def _launcher(self, name: str) -> Launcher:
        """Returns the launcher of a case's library, which is loaded only once."""
        library = self._task["libraries"].get(name, self._task["library"])
        if library not in self._launchers:
            self._launchers[library] = Launcher(Path(library), self._backend)
        return self._launchers[library]

    def _problem(self, case: Case, memory: Mapping[str, str]) -> Problem:
        """Returns the problem of a case; the pool of pinned memory is kept while the shapes stay the same."""
        shapes = self._family.shapes(case)
        if shapes != self._shapes and isinstance(self._backend, CupyBackend):
            self._backend.xp.get_default_pinned_memory_pool().free_all_blocks()
        self._shapes = shapes
        return Problem(self._backend.xp, self._family, case, memory, self._shared)

    def _run(self, name: str) -> dict[str, Any]:
        settings, backend = self._task["settings"], self._backend
        launcher = self._launcher(name)
        variant, _, case = name.rpartition(":")
        memory = self._task["memory"][variant]
        problem = self._problem(self._family.case(case), memory)
        if self._task["mode"] == "check":
            from warplog.measure.worker.check_case import check_case

            return check_case(backend, launcher, problem, settings["rounds"])
        if self._task["mode"] == "time":
            from warplog.measure.worker.time_case import time_case

            return time_case(backend, launcher, self._timer, problem, settings, settings["default_mhz"])
        if self._task["mode"] == "sanitize":
            from warplog.measure.worker.sanitize_case import sanitize_case

            assert isinstance(backend, DriverBackend)
            return sanitize_case(backend, launcher, problem)
        from warplog.measure.worker.capture_case import capture_case

        assert isinstance(backend, CupyBackend)
        return capture_case(backend, launcher, problem, settings["tool"], settings["launches"], name)


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1])))
    except Exception:
        traceback.print_exc()
        sys.exit(BROKEN)
