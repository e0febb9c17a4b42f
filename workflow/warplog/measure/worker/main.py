"""The worker process: runs the cases of a task one after the other and notes each result in the journal.

    python -m warplog.measure.worker.main TASK.json

A case that destroys the CUDA context or kills the process ends the worker; the supervisor starts a new one for
the remaining cases. Standard output and error go to the supervisor's log.

Cases of numbered processes run in one child process for each number. The worker imports the array library before it
forks, so that a fresh process costs a CUDA context and no imports. At rest it goes on with the further processes that
its results ask for.
"""

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from warplog.catalog.family import Family, load_family
from warplog.core.locks import hold
from warplog.core.process import die_with_parent
from warplog.machine.clocks import Sampler
from warplog.machine.nvml import kept_loaded
from warplog.measure.journal import Begun, Opened, Started, Waiting, note, results_in
from warplog.measure.results import Accessed, AtRest, LaunchFailed, Result, Sustained
from warplog.measure.rounds import Pair, further, in_order
from warplog.measure.task import (
    AccessWork,
    CaptureWork,
    CaseRun,
    CheckWork,
    CompileWork,
    SanitizeWork,
    SustainWork,
    Task,
    TimelineWork,
    TimeWork,
    TuneWork,
)
from warplog.measure.worker.backend import (
    DEVICE_ERRORS,
    Backend,
    CupyBackend,
    DriverBackend,
    Launcher,
    NumpyBackend,
    classify,
    import_arrays,
    make_backend,
    scattered,
)
from warplog.measure.worker.case_data import SEEDS, SHARED_DATA, CaseData
from warplog.measure.worker.problem import Problem
from warplog.measure.worker.python.launcher import PythonLauncher, import_languages
from warplog.records import door

CONTEXT_LOST = 70  # exit status after a device error, after which nothing can run in this process
BROKEN = 71  # exit status if warplog, a reference.py or the installation failed, not the kernel


def main(task_file: Path) -> int:
    """Runs the task; returns 0 if every case was tried, or the deadline was reached."""
    task = door.read(task_file, Task)
    note(task.journal, Started(pid=os.getpid()))
    # The signal is sent when the parent thread ends, and that of a profiler may be short-lived.
    if not task.wrapper:
        die_with_parent(signal.SIGKILL)
    family = load_family(Path(task.family_file))
    import_arrays(task.backend)
    if task.backend != NumpyBackend.name:
        names = {run.variant for run in task.runs}
        import_languages({variant.language for variant in family.variants if variant.name in names})
    runs: Sequence[CaseRun] = task.runs
    with _alone(task.gpu_lock, task.journal):
        while runs:
            for number, group in groupby(runs, key=lambda run: run.process):
                status = (_in_child if number else _work)(task, family, list(group))
                if status:
                    return status
            runs = _further(task, family)
    return 0


def _further(task: Task, family: Family) -> list[CaseRun]:
    """Returns what further processes run at rest: the GPU would be idle while another worker starts for them."""
    work = task.work
    if not isinstance(work, TimeWork) or isinstance(work, SustainWork) or task.is_over():
        return []
    rest: dict[Pair, list[Result]] = {(run.variant, run.case): [] for run in task.runs}
    for result in results_in(task.journal):
        rest.get((result.run.variant, result.run.case), []).append(result)
    return in_order(*further(rest, work.settings), list(family.cases), f"{work.seed}/{work.mode}")


@contextlib.contextmanager
def _alone(uuid: str, journal: Path) -> Iterator[None]:
    """Locks the GPU with this UUID, if any; the CUDA context is created and the GPU is used only inside."""
    if not uuid:
        yield
        return
    note(journal, Waiting())
    with hold(uuid):
        note(journal, Waiting(held_since_s=time.monotonic()))
        yield


def _in_child(task: Task, family: Family, runs: Sequence[CaseRun]) -> int:
    """Runs the cases in a child process; returns its exit status, or ends this process by the same signal."""
    pid = os.fork()
    if pid == 0:
        status = BROKEN
        try:
            note(task.journal, Started(pid=os.getpid()))
            die_with_parent(signal.SIGKILL)
            status = _work(task, family, runs)
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


def _work(task: Task, family: Family, runs: Sequence[CaseRun]) -> int:
    if isinstance(task.work, TimeWork | TuneWork):
        # Reading the energy takes longer than most measurements at rest, which do not use it.
        with Sampler(with_energy=isinstance(task.work, SustainWork)) as sampler:
            return _run_cases(task, family, runs, sampler)
    # Captures look at the clock in every case; the other modes do not use NVML.
    with kept_loaded() if isinstance(task.work, CaptureWork) else contextlib.nullcontext():
        return _run_cases(task, family, runs)


def _run_cases(task: Task, family: Family, runs: Sequence[CaseRun], sampler: Sampler | None = None) -> int:
    backend = make_backend(task.backend)
    runner = _Runner(task, family, backend, sampler)
    note(task.journal, Opened(session=replace(backend.session(), empty_us=runner.empty_us)))
    for run in runs:
        if task.is_over():
            break
        note(task.journal, Begun(run=run))
        begin = time.monotonic()
        result = runner.run(run)
        note(task.journal, replace(result, seconds=round(time.monotonic() - begin, 3)))
        if result.status == "crashed":
            return CONTEXT_LOST
    return 0


class _Runner:
    """Runs cases and keeps what they share: launchers, timing core, inputs.

    Attributes:
        empty_us: the empty interval of the timing core; None without one.
    """

    def __init__(self, task: Task, family: Family, backend: Backend, sampler: Sampler | None) -> None:
        self._task = task
        self._sampler = sampler
        self._backend = backend
        self._family = family
        self._timer: Any = None
        self._tuner: Any = None
        if task.timer:
            from warplog.measure.worker.timer import Timer

            blocking = family.measuring.timing == "stream"
            self._timer = Timer(Path(task.timer), blocking, task.default_mhz)
        self.empty_us: float | None = self._timer.empty_us if self._timer else None
        if isinstance(task.work, TuneWork):
            from warplog.measure.worker.tune_setting import Tuner

            self._tuner = Tuner(backend, self._timer, family, task.work, self._watching())
        self._launchers: dict[str, Launcher] = {}  # by variant
        self._shapes: list[tuple[int, ...]] = []
        self._kept: tuple[Any, Problem] | None = None  # the problem of the last sustained case
        self._sustained_until = 0.0
        self._shared = CaseData(backend.xp, family) if task.work.mode in SHARED_DATA else None

    def run(self, run: CaseRun) -> Result:
        """Runs one case or setting; a device error is a result with status and reason."""
        try:
            if self._tuner:
                return Result(run=run, found=self._tuner.run(Path(self._task.libraries[run.variant])))
            return self._run(run)
        except LaunchFailed as failed:
            return Result(run=run, status=failed.status, reason=failed.reason)
        except Exception as error:
            if type(error).__name__ not in DEVICE_ERRORS:
                raise
            status, reason = classify(error)
            return Result(run=run, status=status, reason=reason)
        finally:
            for launcher in self._launchers.values():
                launcher.release()
            if isinstance(self._backend, CupyBackend):
                self._backend.xp.get_default_memory_pool().free_all_blocks()

    def _watching(self) -> Sampler:
        """Returns the sampler, which the modes that time have."""
        assert self._sampler is not None
        return self._sampler

    def _launcher(self, variant: str) -> Launcher:
        """Returns the launcher of a variant's library or module, which is loaded only once."""
        if variant not in self._launchers:
            library = Path(self._task.libraries[variant])
            self._launchers[variant] = (
                PythonLauncher(self._family.variant(variant), self._backend)
                if library.suffix == ".py"
                else Launcher(library, self._backend)
            )
        return self._launchers[variant]

    def _problem(self, run: CaseRun, offsets: Random | None = None) -> Problem:
        """Returns the problem of a case; the pool of pinned memory is kept while the shapes stay the same."""
        case, memory = self._family.case(run.case), self._task.memory[run.variant]
        shapes = self._family.shapes(case)
        if shapes != self._shapes and isinstance(self._backend, CupyBackend):
            self._backend.xp.get_default_pinned_memory_pool().free_all_blocks()
        self._shapes = shapes
        return Problem(self._backend.xp, self._family, case, memory, self._shared, offsets)

    def _run(self, run: CaseRun) -> Result:
        backend, work = self._backend, self._task.work
        launcher = self._launcher(run.variant)
        if isinstance(work, SustainWork):
            return Result(run=run, found=self._sustain(launcher, run))
        if isinstance(work, TimeWork):
            return Result(run=run, found=self._time(launcher, run, work))
        problem = self._problem(run)
        launcher.prepare(problem, SEEDS[work.mode])
        match work:
            case CheckWork():
                from warplog.measure.worker.check_case import check_case

                checked, wrong = check_case(backend, launcher, problem, work.rounds)
                return Result(run=run, status="wrong" if wrong else "ok", reason=wrong, found=checked)
            case SanitizeWork():
                from warplog.measure.worker.sanitize_case import sanitize_case

                assert isinstance(backend, DriverBackend)
                sanitize_case(backend, launcher, problem)
                return Result(run=run)
            case CompileWork():
                from warplog.measure.worker.python.compile_case import compile_case

                assert isinstance(backend, DriverBackend)
                return Result(run=run, found=compile_case(backend, launcher, problem))
            case TimelineWork():
                from warplog.measure.worker.timeline_case import timeline_case

                marked = Path(work.marked[run.variant])
                buffer = Path(self._task.folder) / f"{run.variant}.npz"
                marks = timeline_case(backend, launcher, marked, self._timer, problem, work.settings, buffer)
                return Result(run=run, found=marks)
            case AccessWork():
                return Result(run=run, found=self._trace(launcher, problem, run, work))
            case CaptureWork():
                from warplog.measure.worker.capture_case import capture_case

                assert isinstance(backend, CupyBackend)
                return Result(run=run, found=capture_case(backend, launcher, problem, work, str(run)))
            case TuneWork():
                raise AssertionError("settings are run by the tuner")

    def _trace(self, launcher: Launcher, problem: Problem, run: CaseRun, work: AccessWork) -> Accessed | None:
        from warplog.measure.worker import access_case

        if work.tracer:
            trace = access_case.trace_of(Path(self._task.folder), run)
            return access_case.trace_case(self._backend, launcher, problem, work, trace)
        assert isinstance(self._backend, CupyBackend)
        access_case.count_case(self._backend, launcher, problem, str(run))
        return None

    def _time(self, launcher: Launcher, run: CaseRun, work: TimeWork) -> AtRest:
        from warplog.measure.worker.time_case import time_case

        with scattered(self._backend, f"{work.seed}/{run}") as seed:
            problem = self._problem(run, Random(seed))  # noqa: S311 - no secret
            launcher.prepare(problem, SEEDS["time"])
            times = time_case(
                self._backend,
                launcher,
                self._timer,
                problem,
                work.settings,
                self._watching(),
                run.process,
            )
            addresses = tuple(array.pointer() for array in problem.arrays.values())
        return replace(times, seed=seed, addresses=addresses)

    def _sustain(self, launcher: Launcher, run: CaseRun) -> Sustained:
        """Measures a case back to back, right after the last one: then the GPU need not settle again.

        The variants of a case use the same arrays, and each starts with the same contents.
        """
        from warplog.measure.worker import sampling, time_case

        key = run.case, self._task.memory[run.variant]
        if self._kept is None or self._kept[0] != key:
            self._kept = None
            self._kept = key, self._problem(run)
        problem = self._kept[1]
        launcher.prepare(problem, SEEDS["sustain"])
        time_case.fill(self._backend, problem)
        from_rest = time.monotonic() > self._sustained_until
        settle_s = sampling.SETTLE_FROM_REST_S if from_rest else sampling.SETTLE_S
        sustained = time_case.sustain_case(
            launcher, self._timer, problem, self._watching(), settle_s, run.process
        )
        self._sustained_until = time.monotonic() + sampling.SETTLE_S
        return sustained


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1])))
    except Exception:
        traceback.print_exc()
        sys.exit(BROKEN)
