"""Checks and then times one compiled setting after the other, on problems that are made once."""

from pathlib import Path
from typing import Any

from warplog.catalog import Family
from warplog.errors import WarplogError
from warplog.gpu.backend import Backend, Launcher
from warplog.gpu.check_case import check_case
from warplog.gpu.problem import Problem
from warplog.gpu.time_case import time_case
from warplog.gpu.timer import Timer


class Tuner:
    """The problems that all settings are given; `settings` are those of the task (see warplog.tuning)."""

    def __init__(self, backend: Backend, timer: Timer, family: Family, settings: dict[str, Any]) -> None:
        self._backend = backend
        self._timer = timer
        self._settings = settings
        self._checked = [Problem(backend.xp, family, family.case(name)) for name in settings["check_cases"]]
        self._timed = [Problem(backend.xp, family, family.case(name)) for name in settings["cases"]]

    def run(self, library: Path) -> dict[str, Any]:
        """Status, reason and, where all check cases passed, the times of each timed case.

        Raises:
            LaunchFailed: the launcher or the device reports an error.
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
                self._settings["default_mhz"],
            )
            if found["status"] != "ok":
                return {"status": found["status"], "reason": f"case {problem.case.name}: {found['reason']}"}
            times.append(
                {"case": problem.case.name, "cold": found["cold"], "hot_us": found["hot"]["median_us"]}
            )
        return {"status": "ok", "reason": "", "times": times}
