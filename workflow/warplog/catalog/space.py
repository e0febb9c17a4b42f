"""Search spaces of `snakemake tune`: parameters with their values, and conditions for valid settings."""

import itertools
import math
import random
from collections.abc import Mapping

from msgspec.structs import asdict

from warplog.catalog.contract import Tune, VariantEntry
from warplog.core import formula
from warplog.core.errors import WarplogError

Setting = Mapping[str, int]
MOST_COMBINATIONS = 100_000
_SEED = 1


class Space(Tune, frozen=True, kw_only=True):
    """The search space of a variant.

    Attributes:
        fixed: all parameters of the variant's entry, with the searched ones at their defaults.
        file: prefix of errors: the family.yaml and the variant.
    """

    fixed: Mapping[str, int]
    file: str

    def default(self) -> Setting:
        """Returns the setting in the variant's entry."""
        return {name: self.fixed[name] for name in self.values}

    def parameters(self, setting: Setting) -> dict[str, int]:
        """Returns all parameters of the variant for this setting."""
        return {**self.fixed, **setting}

    def block_threads(self, setting: Setting) -> int:
        """Returns the number of threads per block."""
        return int(formula.evaluate(self.threads, self.parameters(setting), f"{self.file}: tune.threads"))

    def block_dynamic_shared_bytes(self, setting: Setting) -> int:
        """Returns the dynamic shared memory per block in bytes."""
        where = f"{self.file}: tune.dynamic_shared_bytes"
        return int(formula.evaluate(self.dynamic_shared_bytes, self.parameters(setting), where))

    def why_not(self, setting: Setting) -> str:
        """Returns the first condition that the setting violates; '' if it is valid."""
        for name, allowed in self.values.items():
            if setting.get(name) not in allowed:
                return f"{name}: {setting.get(name)} is not one of {list(allowed)}"
        names = {**self.parameters(setting), "THREADS": self.block_threads(setting)}
        return next(
            (text for text in self.where if not formula.holds(text, names, f"{self.file}: tune.where")), ""
        )

    def settings(self) -> list[Setting]:
        """Returns all valid settings in the order in which they are tried.

        The default comes first, then `first`, then the others in a seeded random order, so that an interrupted
        search has seen a random sample: the best of n random settings is among the best share p of the space
        with probability 1 - (1 - p)^n.
        """
        combinations = (
            dict(zip(self.values, c, strict=True)) for c in itertools.product(*self.values.values())
        )
        others = [setting for setting in combinations if not self.why_not(setting)]
        random.Random(_SEED).shuffle(others)  # noqa: S311 - an order, not a secret
        return list({name_of(s): s for s in [self.default(), *self.first, *others]}.values())


def name_of(setting: Setting) -> str:
    """Returns the name of a setting, such as 'BM128_BN128'; also valid as a folder name."""
    return "_".join(f"{name}{value}" for name, value in setting.items())


def space_of(entry: VariantEntry, where: str) -> Space | None:
    """Makes the search space of a variant's entry; None if it has no `tune`.

    Raises:
        WarplogError: A default is missing or invalid, a formula fails, or there are too many combinations.
    """
    tune, fixed = entry.search, entry.parameters
    if tune is None:
        return None
    missing = [name for name in tune.values if name not in fixed]
    if missing:
        raise WarplogError(f"{where}: tune.values: {missing[0]!r} has no default in `parameters`; add one")
    unknown = sorted({name for setting in tune.first for name in setting if name not in tune.values})
    if unknown:
        raise WarplogError(
            f"{where}: tune.first: {unknown[0]!r} is not a searched parameter; known: {', '.join(tune.values)}"
        )
    first = tuple({name: setting.get(name, fixed[name]) for name in tune.values} for setting in tune.first)
    space = Space(**{**asdict(tune), "first": first}, fixed=fixed, file=where)
    count = math.prod(map(len, space.values.values()))
    if count > MOST_COMBINATIONS:
        raise WarplogError(f"{where}: tune.values: {count} combinations, the limit is {MOST_COMBINATIONS}")
    for setting in (space.default(), *space.first):
        if violated := space.why_not(setting):
            raise WarplogError(f"{where}: tune: {name_of(setting)} violates {violated!r}")
    return space
