"""Checks and times compiled settings one after the other, on problems that are created once."""

from collections.abc import Sequence
from pathlib import Path

from warplog.catalog.family import Family
from warplog.core.errors import WarplogError
from warplog.machine.clocks import Sampler
from warplog.measure.results import LaunchFailed, Tuned
from warplog.measure.task import TuneWork
from warplog.measure.worker.backend import Backend, Launcher
from warplog.measure.worker.check_case import check_case
from warplog.measure.worker.problem import Problem
from warplog.measure.worker.time_case import time_case
from warplog.measure.worker.timer import Timer
from warplog.records.requested.tune import TunedCase


class Tuner:
    """Holds the problems that all settings of a search share.

    Args:
        backend: array library and device.
        timer: the timing core.
        family: the family, which defines the cases.
        work: what to check and to time.
        sampler: reads the board's state.
    """

    def __init__(
        self, backend: Backend, timer: Timer, family: Family, work: TuneWork, sampler: Sampler
    ) -> None:
        def problems(cases: Sequence[str]) -> list[Problem]:
            return [Problem(backend.xp, family, family.case(name)) for name in cases]

        self._backend = backend
        self._timer = timer
        self._sampler = sampler
        self._work = work
        self._checked, self._timed = problems(work.check_cases), problems(work.cases)

    def run(self, library: Path) -> Tuned:
        """Returns the times of each timed case.

        Raises:
            LaunchFailed: The launcher or the device reports an error, or the results of a case are wrong.
        """
        try:
            launcher = Launcher(library, self._backend)
        except WarplogError as error:
            raise LaunchFailed("error", str(error)) from None
        for problem in self._checked:
            _, wrong = check_case(self._backend, launcher, problem, self._work.rounds)
            if wrong:
                raise LaunchFailed("wrong", f"case {problem.case.name}: {wrong}")
        return Tuned(cases=tuple(self._time(launcher, problem) for problem in self._timed))

    def _time(self, launcher: Launcher, problem: Problem) -> TunedCase:
        name = problem.case.name
        try:
            found = time_case(self._backend, launcher, self._timer, problem, self._work.time, self._sampler)
        except LaunchFailed as failed:
            raise LaunchFailed(failed.status, f"case {name}: {failed.reason}") from None
        assert found.hot is not None  # since hot_cases is "all"
        cold = found.cold
        return TunedCase(
            case=name,
            median_us=cold.median_us,
            q1_us=cold.q1_us,
            q3_us=cold.q3_us,
            rel_spread=cold.rel_spread,
            samples=cold.samples,
            hot_us=found.hot.median_us,
            final_us=None,
        )
