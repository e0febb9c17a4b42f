"""The counters of two versions of a kernel that are compared, and by how much they must differ to count."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# Of a launch of several kernels: sums over these, and maxima.
_SUMMED = ("instructions_executed", "dram_bytes", "l2_bytes", "shared_wavefronts")
# Largest relative change of each counter between runs of the same code, and values too small to matter.
TOLERANCES: Mapping[str, float] = {
    "instructions_executed": 0.01,
    "dram_bytes": 0.05,
    "l2_bytes": 0.02,
    "shared_wavefronts": 0.01,
    "registers_per_thread": 0.0,
}
_SMALL: Mapping[str, float] = {"dram_bytes": 1e6, "l2_bytes": 1e6}


@dataclass(frozen=True)
class Change:
    """A counter that changed by more than its tolerance; `ratio` is after / before, infinite if before is 0."""

    counter: str
    before: float
    after: float
    ratio: float


def totals(values: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    """Returns the counters of a launch from the metrics of its kernels; one that a kernel lacks is left out."""
    by_name: dict[str, list[float | None]] = {}
    for name, value in values:
        if name in TOLERANCES:
            by_name.setdefault(name, []).append(value)
    return {
        name: (sum if name in _SUMMED else max)(present)
        for name, own in by_name.items()
        if len(present := [value for value in own if value is not None]) == len(own)
    }


def counted(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[str, tuple[Change, ...]]:
    """Returns the verdict on counters (MORE, LESS, MIXED, SAME; "" if none is common) and those that changed."""
    changes = []
    common = [name for name in TOLERANCES if name in before and name in after]
    for name in common:
        old, new = before[name], after[name]
        if abs(new - old) > TOLERANCES[name] * abs(old) and max(old, new) > _SMALL.get(name, 0.0):
            changes.append(Change(name, old, new, new / old if old else math.inf))
    signs = {change.after > change.before for change in changes}
    word = "MIXED" if len(signs) > 1 else "MORE" if True in signs else "LESS" if signs else "SAME"
    return (word if common else ""), tuple(changes)
