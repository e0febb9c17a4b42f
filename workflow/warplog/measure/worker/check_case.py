"""Checks one case: rounds of new inputs, poisoned outputs, guard bands, and the float64 reference."""

from typing import Any

from warplog.measure.worker.backend import Backend, Launcher
from warplog.measure.worker.case_data import SEEDS
from warplog.measure.worker.problem import Problem


def check_case(backend: Backend, launcher: Launcher, problem: Problem, rounds: int) -> dict[str, Any]:
    """Runs `rounds` rounds, or fewer if one is wrong, and returns the case's record.

    Raises:
        LaunchFailed: The launcher or the device reports an error.
    """
    absolute = relative = 0.0
    for number in range(rounds):
        problem.fill(SEEDS["check"] + number)
        backend.synchronise()
        launcher(problem.arguments)
        verdict = problem.verdict()
        if verdict.reason:
            return {"status": "wrong", "reason": verdict.reason, "rounds": number + 1}
        absolute = max(absolute, verdict.max_abs_error or 0.0)
        relative = max(relative, verdict.max_error_over_tolerance or 0.0)
    return {
        "status": "ok",
        "reason": "",
        "rounds": rounds,
        "max_abs_error": absolute,
        "max_error_over_tolerance": relative,
    }
