"""Checks and times compiled settings one after the other, on problems that are created once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warplog.catalog.family import Family
from warplog.core.errors import WarplogError
from warplog.machine.clocks import Sampler
from warplog.measure.worker.backend import Backend, Launcher
from warplog.measure.worker.check_case import check_case
from warplog.measure.worker.problem import Problem
from warplog.measure.worker.time_case import time_case
from warplog.measure.worker.timer import Timer

_OF_PROCESS = ("pause_us", "held", "full_mhz")  # of `cold`: how it was measured


class Tuner:
    """Holds the problems that all settings of a search share.

    Args:
        backend: array library and device.
        timer: the timing core.
        family: the family, which defines the cases.
        settings: settings of the task: check_cases, rounds, cases, time and default_mhz (see tuning.search).
        memory: arrays in host memory by name.
        sampler: reads the board's state.
    """

    def __init__(
        self,
        backend: Backend,
        timer: Timer,
        family: Family,
        settings: dict[str, Any],
        memory: Mapping[str, str],
        sampler: Sampler,
    ) -> None:
        def problems(cases: list[str]) -> list[Problem]:
            return [Problem(backend.xp, family, family.case(name), memory) for name in cases]

        self._backend = backend
        self._timer = timer
        self._sampler = sampler
        self._settings = settings
        self._checked, self._timed = problems(settings["check_cases"]), problems(settings["cases"])

    def run(self, library: Path) -> dict[str, Any]:
        """Returns status, reason and, if all check cases passed, the times of each timed case.

        Raises:
            LaunchFailed: The launcher or the device reports an error.
        """
        try:
            launcher = Launcher(library, self._backend)
        except WarplogError as error:
            return {"status": "error", "reason": str(error)}
        for problem in self._checked:
            found = check_case(self._backend, launcher, problem, self._settings["rounds"])
            if found["status"] != "ok":
                return {"status": found["status"], "reason": f"case {problem.case.name}: {found['reason']}"}
        times = []
        for problem in self._timed:
            found = time_case(
                self._backend,
                launcher,
                self._timer,
                problem,
                self._settings["time"],
                self._sampler,
            )
            if found["status"] != "ok":
                return {"status": found["status"], "reason": f"case {problem.case.name}: {found['reason']}"}
            cold = {key: value for key, value in found["cold"].items() if key not in _OF_PROCESS}
            times.append({"case": problem.case.name, "cold": cold, "hot_us": found["hot"]["median_us"]})
        return {"status": "ok", "reason": "", "times": times}
