"""The check of one case: how its rounds are combined."""

from types import SimpleNamespace

from warplog.measure.results import Checked
from warplog.measure.worker.check_case import check_case
from warplog.measure.worker.problem import Verdict

BACKEND = SimpleNamespace(synchronise=lambda: None)


class FakeProblem:
    """Returns a given verdict per round, and records the seeds that it was filled with."""

    arguments = None

    def __init__(self, *verdicts: Verdict) -> None:
        self._verdicts = list(verdicts)
        self.seeds: list[int] = []

    def fill(self, seed: int) -> None:
        self.seeds.append(seed)

    def verdict(self) -> Verdict:
        return self._verdicts.pop(0)


def test_the_errors_of_a_case_are_the_maxima_over_its_rounds() -> None:
    problem = FakeProblem(Verdict("", 2e-6, 0.5), Verdict("", 5e-6, 0.25), Verdict("", 1e-6, 0.375))
    found, wrong = check_case(BACKEND, lambda _: None, problem, rounds=3)
    assert wrong == ""
    assert found == Checked(rounds=3, max_abs_error=5e-6, max_error_over_tolerance=0.5)
    assert problem.seeds == [1, 2, 3], "new inputs in each round"


def test_the_first_wrong_round_ends_the_case() -> None:
    problem = FakeProblem(Verdict("", 0.0, 0.0), Verdict("C is all zero"), Verdict("", 0.0, 0.0))
    assert check_case(BACKEND, lambda _: None, problem, rounds=3) == (Checked(rounds=2), "C is all zero")
    assert problem.seeds == [1, 2]
