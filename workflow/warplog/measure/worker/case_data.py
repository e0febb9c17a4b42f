"""Inputs of a case and the right answers to them, kept while they are asked for: variants of a family share them."""

from types import ModuleType
from typing import Any

from warplog.catalog.contract import Case
from warplog.catalog.family import Family

SHARED_DATA = ("time", "capture")  # what a worker may share it for: kernels that have been checked


class CaseData:
    """Inputs and float64 answers of one case and seed at a time, as arrays of `xp` that nobody may change.

    Making the inputs of a large case and working out its answer takes longer than timing a kernel on it. Kernels that
    have not been checked must not share them: what writes far outside its output could change them.
    """

    def __init__(self, xp: ModuleType, family: Family) -> None:
        self._xp = xp
        self._reference = family.reference()
        self._key: tuple[str, int] | None = None
        self._inputs: dict[str, Any] = {}
        self._answers: dict[str, tuple[Any, Any]] | None = None

    def inputs(self, case: Case, seed: int) -> dict[str, Any]:
        """The inputs by name: random, and the same for the same seed."""
        if self._key != (case.name, seed):
            self._key, self._inputs, self._answers = None, {}, None  # memory for the next ones
            rng = self._xp.random.default_rng(seed)
            self._inputs = self._reference.make_inputs(self._xp, rng, case.values)
            self._key = case.name, seed
        return self._inputs

    def answers(self, case: Case, seed: int) -> dict[str, tuple[Any, Any]]:
        """For each output its right values, and what their rounding error is relative to; both float64."""
        inputs = self.inputs(case, seed)
        if self._answers is None:
            self._answers = self._reference.reference(self._xp, inputs, case.values)
        return self._answers
