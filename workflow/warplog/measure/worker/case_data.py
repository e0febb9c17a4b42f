"""Inputs of a case and their reference answers, which the variants of a family share."""

from types import ModuleType

from warplog.catalog.contract import Case
from warplog.catalog.family import Family
from warplog.measure.worker.encoding import Array, Arrays, rounded

# Modes in which variants share it, since their kernels passed the check.
SHARED_DATA = ("time", "sustain", "capture")
# The seed of the inputs in each mode; of the first round, in mode check.
SEEDS = {
    "check": 1,
    "time": 20_000,
    "sustain": 20_000,
    "capture": 30_000,
    "sanitize": 40_000,
    "compile": 40_000,
    "timeline": 50_000,
    "accesses": 60_000,
}


class CaseData:
    """Inputs and float64 answers of one case and seed at a time, as arrays of `xp` that must not be modified.

    For a large case, computing inputs and answers takes longer than timing a kernel. Unchecked kernels must not
    share them, since a write far outside of an output could change them.
    """

    def __init__(self, xp: ModuleType, family: Family) -> None:
        self._xp = xp
        self._reference = family.reference()
        self._family = family
        self._key: tuple[str, int] | None = None
        self._inputs: Arrays = {}
        self._answers: dict[str, tuple[Array, Array]] | None = None

    def inputs(self, case: Case, seed: int) -> Arrays:
        """Returns the random inputs by name; equal seeds give equal inputs. Inputs in float8 are rounded to it."""
        if self._key != (case.name, seed):
            self._key, self._inputs, self._answers = None, {}, None  # frees memory for the next ones
            rng = self._xp.random.default_rng(seed)
            made = self._reference.make_inputs(self._xp, rng, case.values)
            dtypes = {a.name: self._family.dtype(a, case) for a in self._family.arguments}
            self._inputs = {name: rounded(self._xp, v, dtypes.get(name, "")) for name, v in made.items()}
            self._key = case.name, seed
        return self._inputs

    def answers(self, case: Case, seed: int) -> dict[str, tuple[Array, Array]]:
        """Returns the reference values of each output and the scale of their rounding error, in float64."""
        inputs = self.inputs(case, seed)
        if self._answers is None:
            self._answers = self._reference.reference(self._xp, inputs, case.values)
        return self._answers
