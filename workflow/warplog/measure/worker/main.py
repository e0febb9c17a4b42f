"""The worker process: runs the cases of a task one after the other and notes each result in the journal.

    python -m warplog.measure.worker.main TASK.json

A case that destroys the CUDA context or kills the process ends the worker; the supervisor starts a new one for
the remaining cases. Standard output and error go to the supervisor's log.

Cases whose names begin with the number of a process (`2/naive:4096`) run in one child process for each number. The
worker imports the array library before it forks, so that a fresh process costs a CUDA context and no imports.
"""

import contextlib
import json
import os
import signal
import sys
import time
import traceback
import zlib
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

from warplog.catalog.contract import Case
from warplog.catalog.family import Family, load_family
from warplog.core.locks import hold
from warplog.core.process import die_with_parent
from warplog.machine.clocks import Sampler
from warplog.machine.nvml import kept_loaded
from warplog.measure.journal import note
from warplog.measure.worker.backend import (
    Backend,
    CupyBackend,
    DriverBackend,
    Launcher,
    LaunchFailed,
    NumpyBackend,
    classify,
    import_arrays,
    make_backend,
)
from warplog.measure.worker.case_data import SEEDS, SHARED_DATA, CaseData
from warplog.measure.worker.problem import Problem
from warplog.measure.worker.python_launcher import PythonLauncher, import_languages

CONTEXT_LOST = 70  # exit status after a device error, after which nothing can run in this process
_SPACERS, _LARGEST_SPACER_MIB = 3, 128
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
    if task["backend"] != NumpyBackend.name:
        import_languages(_languages(family, task["cases"]))
    with _alone(task["gpu_lock"], Path(task["journal"])):
        for number, cases in groupby(task["cases"], key=process_of):
            status = _in_child(task, family, list(cases)) if number else _work(task, family, task["cases"])
            if status:
                return status
    return 0


def _languages(family: Family, cases: list[str]) -> set[str]:
    """Returns the languages of the variants whose cases are run."""
    names = {parts_of(case)[0] for case in cases}
    return {variant.language for variant in family.variants if variant.name in names}


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


def _in_child(task: dict[str, Any], family: Family, cases: list[str]) -> int:
    """Runs the cases in a child process; returns its exit status, or ends this process by the same signal."""
    pid = os.fork()
    if pid == 0:
        status = BROKEN
        try:
            note(Path(task["journal"]), {"pid": os.getpid()})
            die_with_parent(signal.SIGKILL)
            status = _work(task, family, cases)
        except Exception:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)  # the clean-up of the interpreter belongs to the parent
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


def _work(task: dict[str, Any], family: Family, cases: list[str]) -> int:
    if task["mode"] in ("time", "sustain", "tune"):
        # Reading the energy takes longer than most measurements at rest, which do not use it.
        with Sampler(with_energy=task["mode"] == "sustain") as sampler:
            return _run_cases(task, family, cases, sampler)
    # Captures look at the clock in every case; the other modes do not use NVML.
    with kept_loaded() if task["mode"] == "capture" else contextlib.nullcontext():
        return _run_cases(task, family, cases)


def _run_cases(task: dict[str, Any], family: Family, cases: list[str], sampler: Sampler | None = None) -> int:
    backend = make_backend(task["backend"])
    journal = Path(task["journal"])
    runner = _Runner(task, family, backend, sampler)
    note(journal, {"session": {**backend.facts(), **runner.facts()}})
    for name in cases:
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

    def __init__(
        self, task: dict[str, Any], family: Family, backend: Backend, sampler: Sampler | None
    ) -> None:
        self._task = task
        self._sampler = sampler
        self._backend = backend
        self._family = family
        self._timer: Any = None
        self._tuner: Any = None
        if task["timer"]:
            from warplog.measure.worker.timer import Timer

            blocking = family.measuring.timing == "stream"
            self._timer = Timer(Path(task["timer"]), blocking, task["settings"]["default_mhz"])
        if task["mode"] == "tune":
            from warplog.measure.worker.tune_setting import Tuner

            settings, memory = task["settings"], task["memory"][""]
            self._tuner = Tuner(backend, self._timer, family, settings, memory, self._watching())
        self._launchers: dict[tuple[str, Path], Launcher] = {}  # by variant and library
        self._shapes: list[tuple[int, ...]] = []
        self._kept: tuple[Any, Problem] | None = None  # the problem of the last sustained case
        self._sustained_until = 0.0
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
            for launcher in self._launchers.values():
                launcher.release()
            if isinstance(self._backend, CupyBackend):
                self._backend.xp.get_default_memory_pool().free_all_blocks()

    def _watching(self) -> Sampler:
        """Returns the sampler, which the modes that time have."""
        assert self._sampler is not None
        return self._sampler

    def _launcher(self, name: str) -> Launcher:
        """Returns the launcher of a case's library or module, which is loaded only once."""
        library = Path(self._task["libraries"].get(name, self._task["library"]))
        key = parts_of(name)[0], library
        if key not in self._launchers:
            self._launchers[key] = (
                PythonLauncher(self._family.variant(key[0]), self._backend)
                if library.suffix == ".py"
                else Launcher(library, self._backend)
            )
        return self._launchers[key]

    def _problem(self, case: Case, memory: Mapping[str, str], offsets: Random | None = None) -> Problem:
        """Returns the problem of a case; the pool of pinned memory is kept while the shapes stay the same."""
        shapes = self._family.shapes(case)
        if shapes != self._shapes and isinstance(self._backend, CupyBackend):
            self._backend.xp.get_default_pinned_memory_pool().free_all_blocks()
        self._shapes = shapes
        return Problem(self._backend.xp, self._family, case, memory, self._shared, offsets)

    def _run(self, name: str) -> dict[str, Any]:
        settings, backend, mode = self._task["settings"], self._backend, self._task["mode"]
        launcher = self._launcher(name)
        variant, case = parts_of(name)
        memory = self._task["memory"][variant]
        if mode == "sustain":
            return self._sustain(launcher, case, memory, process_of(name))
        if mode == "time":
            return self._time(launcher, case, memory, name)
        problem = self._problem(self._family.case(case), memory)
        launcher.prepare(problem, SEEDS[mode])
        if mode == "check":
            from warplog.measure.worker.check_case import check_case

            return check_case(backend, launcher, problem, settings["rounds"])
        if mode == "sanitize":
            from warplog.measure.worker.sanitize_case import sanitize_case

            assert isinstance(backend, DriverBackend)
            return sanitize_case(backend, launcher, problem)
        if mode == "compile":
            from warplog.measure.worker.compile_case import compile_case

            assert isinstance(backend, DriverBackend)
            return compile_case(backend, launcher, problem)
        if mode == "timeline":
            from warplog.measure.worker.timeline_case import timeline_case

            marked, path = Path(settings["marked"][variant]), Path(settings["folder"]) / f"{variant}.npz"
            return timeline_case(backend, launcher, marked, self._timer, problem, settings, path)
        from warplog.measure.worker.capture_case import capture_case

        assert isinstance(backend, CupyBackend)
        return capture_case(backend, launcher, problem, settings["tool"], settings["launches"], name)

    def _time(self, launcher: Launcher, case: str, memory: Mapping[str, str], name: str) -> dict[str, Any]:
        from warplog.measure.worker.time_case import time_case

        process, settings = process_of(name), self._task["settings"]
        if process > settings["processes"]:  # which show the spread alone
            settings = settings | {"hot_cases": "none", "max_samples": settings["min_samples"]}
        with self._scattered(name) as seed:
            problem = self._problem(self._family.case(case), memory, Random(seed))  # noqa: S311 - no secret
            launcher.prepare(problem, SEEDS["time"])
            found = time_case(
                self._backend, launcher, self._timer, problem, settings, self._watching(), process
            )
            addresses = [array.pointer() for array in problem.arrays.values()]
        return {**found, "process": process, "seed": seed, "addresses": addresses}

    def _sustain(
        self, launcher: Launcher, case: str, memory: Mapping[str, str], process: int
    ) -> dict[str, Any]:
        """Measures a case back to back, right after the last one: then the GPU need not settle again.

        The variants of a case use the same arrays, and each starts with the same contents.
        """
        from warplog.measure.worker import sampling, time_case

        key = case, tuple(memory.items())
        if self._kept is None or self._kept[0] != key:
            self._kept = None
            self._kept = key, self._problem(self._family.case(case), memory)
        launcher.prepare(self._kept[1], SEEDS["sustain"])
        time_case.fill(self._backend, self._kept[1])
        from_rest = time.monotonic() > self._sustained_until
        settle_s = sampling.SETTLE_FROM_REST_S if from_rest else sampling.SETTLE_S
        problem = self._kept[1]
        found = time_case.sustain_case(launcher, self._timer, problem, self._watching(), settle_s, process)
        self._sustained_until = time.monotonic() + sampling.SETTLE_S
        return {**found, "process": process}

    @contextlib.contextmanager
    def _scattered(self, name: str) -> Iterator[int]:
        """Holds memory of random sizes meanwhile, so that arrays have other addresses in each process; yields the seed.

        The time of some kernels depends on where their arrays lie: the addresses decide which slices of L2 and which
        channels of memory are used at the same time. Arrays smaller than a page are moved within it (`Problem`).
        """
        seed = zlib.crc32(f"{self._task['settings']['seed']}/{name}".encode())
        random = Random(seed)  # noqa: S311 - no secret
        held: list[Any] = []
        if isinstance(self._backend, CupyBackend):
            memory = self._backend.xp.cuda.runtime
            sizes = [random.randrange(1, _LARGEST_SPACER_MIB) << 20 for _ in range(_SPACERS)]
            if sum(sizes) < memory.memGetInfo()[0] // 4:
                held = [memory.malloc(size) for size in sizes]
        try:
            yield seed
        finally:
            for address in held:
                memory.free(address)


def process_of(name: str) -> int:
    """Returns the number of the process in `<process>/<variant>:<case>`; 0 if the name has none."""
    number, slash, _ = name.partition("/")
    return int(number) if slash else 0


def parts_of(name: str) -> tuple[str, str]:
    """Returns variant and case of `[<process>/]<variant>:<case>`; variant "" if there is only a case."""
    variant, _, case = name.rpartition("/")[2].rpartition(":")
    return variant, case


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1])))
    except Exception:
        traceback.print_exc()
        sys.exit(BROKEN)
