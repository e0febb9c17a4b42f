"""A measured number with its unit, as it is read."""

import math

from warplog.step_sentences import number

# Units that are things which are counted: they have a plural.
_COUNTED = frozenset(
    (
        "barrier",
        "block",
        "byte",
        "conflict",
        "cycle",
        "register",
        "sector",
        "thread",
        "warp",
        "wave",
        "wavefront",
    )
)


def measured(value: float, unit: str) -> str:
    """The value with three digits and its unit: "32 registers", "285 M wavefronts", "1.00 x"; "" for NaN."""
    if math.isnan(value):
        return ""
    digits = f"{value:.0f}" if value == round(value) else f"{value:#.3g}".rstrip(".")
    told = digits if abs(value) < 1e4 and "e" not in digits else number(value)
    return f"{told} {_plural(unit, value)}".strip().replace("-", "\u2212", 1 if value < 0 else 0)


def _plural(unit: str, value: float) -> str:
    """A counted thing as it is read: 32 registers, 4 sectors/request, 1 block; 3 us, 5 % and 2 x stay."""
    counted, slash, rest = unit.partition("/")
    return f"{counted}s{slash}{rest}" if value != 1 and counted in _COUNTED else unit
