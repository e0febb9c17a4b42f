"""Checks one case: rounds of new inputs, poisoned outputs, guard bands, and the float64 reference."""

from warplog.measure.results import Checked
from warplog.measure.worker.backend import Backend, Launcher
from warplog.measure.worker.case_data import SEEDS
from warplog.measure.worker.problem import Problem


def check_case(backend: Backend, launcher: Launcher, problem: Problem, rounds: int) -> tuple[Checked, str]:
    """Runs `rounds` rounds, or fewer if one is wrong; returns the errors, and why a round is wrong, "" if none is.

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
            return Checked(rounds=number + 1), verdict.reason
        absolute = max(absolute, verdict.max_abs_error or 0.0)
        relative = max(relative, verdict.max_error_over_tolerance or 0.0)
    return Checked(rounds=rounds, max_abs_error=absolute, max_error_over_tolerance=relative), ""
