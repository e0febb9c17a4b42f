"""What `snakemake tune` searches: parameters with their values, and the conditions of a sensible setting."""

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from warplog.core import formula
from warplog.core.errors import WarplogError

Setting = dict[str, int]
MOST_COMBINATIONS = 100_000
_SEED = 1


@dataclass(frozen=True)
class Space:
    """The `tune` key of a variant (see family.schema.yaml).

    Attributes:
        fixed: the entry's parameters, with the searched ones at their defaults.
        threads, dynamic_shared_bytes: formulas of the parameters, per block.
        file: the family.yaml, for errors.
    """

    values: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, int]
    threads: str
    dynamic_shared_bytes: str
    where: tuple[str, ...]
    cases: tuple[str, ...]
    first: tuple[Setting, ...]
    file: str

    def default(self) -> Setting:
        """The setting of the entry itself."""
        return {name: self.fixed[name] for name in self.values}

    def parameters(self, setting: Setting) -> dict[str, int]:
        """All parameters of the variant in this setting."""
        return {**self.fixed, **setting}

    def block_threads(self, setting: Setting) -> int:
        """Threads of a block."""
        return int(formula.evaluate(self.threads, self.parameters(setting), f"{self.file}: tune.threads"))

    def block_dynamic_shared_bytes(self, setting: Setting) -> int:
        """Dynamic shared memory of a block."""
        where = f"{self.file}: tune.dynamic_shared_bytes"
        return int(formula.evaluate(self.dynamic_shared_bytes, self.parameters(setting), where))

    def why_not(self, setting: Setting) -> str:
        """The first condition that the setting breaks; '' where it is sensible."""
        for name, known in self.values.items():
            if setting.get(name) not in known:
                return f"{name}: {setting.get(name)} is none of {list(known)}"
        names = {**self.parameters(setting), "THREADS": self.block_threads(setting)}
        return next(
            (text for text in self.where if not formula.holds(text, names, f"{self.file}: tune.where")), ""
        )

    def settings(self) -> list[Setting]:
        """All sensible settings in the order in which they are tried.

        The default comes first, then `first`, then the others in a seeded random order: wherever the time
        ends, what was seen is a fair sample of the space, and the best of n settings is among its best
        share p with probability 1 - (1 - p)^n.
        """
        whole = (dict(zip(self.values, c, strict=True)) for c in itertools.product(*self.values.values()))
        others = [setting for setting in whole if not self.why_not(setting)]
        random.Random(_SEED).shuffle(others)  # noqa: S311 - an order, no secret
        return list({name_of(s): s for s in [self.default(), *self.first, *others]}.values())


def name_of(setting: Setting) -> str:
    """A setting as a word, good for a folder too: 'BM128_BN128'."""
    return "_".join(f"{name}{value}" for name, value in setting.items())


def space_of(data: Mapping[str, Any], where: str) -> Space | None:
    """The space of a variant's entry; None where it has no `tune`.

    Raises:
        WarplogError: a default is missing or not sensible, a formula fails, or there are too many combinations.
    """
    if "tune" not in data:
        return None
    tune, fixed = data["tune"], data.get("parameters", {})
    where = f"{where}: variant {data['name']!r}"
    lost = [name for name in tune["values"] if name not in fixed]
    if lost:
        raise WarplogError(
            f"{where}: tune.values: {lost[0]!r} is no parameter of the entry; give its default"
        )
    order = list(tune["values"])
    first = [{name: s.get(name, fixed[name]) for name in order} for s in tune.get("first", ())]
    strangers = sorted({name for s in tune.get("first", ()) for name in s if name not in order})
    if strangers:
        raise WarplogError(
            f"{where}: tune.first: {strangers[0]!r} is not searched; known: {', '.join(order)}"
        )
    space = Space(
        values={name: tuple(values) for name, values in tune["values"].items()},
        fixed=fixed,
        threads=str(tune["threads"]),
        dynamic_shared_bytes=str(tune.get("dynamic_shared_bytes", 0)),
        where=tuple(tune["where"]),
        cases=tuple(tune["cases"]),
        first=tuple(first),
        file=where,
    )
    count = math.prod(map(len, space.values.values()))
    if count > MOST_COMBINATIONS:
        raise WarplogError(f"{where}: tune.values: {count} combinations; {MOST_COMBINATIONS} are allowed")
    for setting in (space.default(), *space.first):
        if broken := space.why_not(setting):
            raise WarplogError(f"{where}: tune: {name_of(setting)} breaks {broken!r}")
    return space
