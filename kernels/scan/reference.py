"""Inputs and the reference answer of a prefix sum; `xp` is cupy, or numpy where there is no GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # arrays and generators of cupy serve as well
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """x [n], float32, each element -3, -1, 1 or 3.

    Every sum of them stays far below 2^24 (its standard deviation is sqrt(5 n), 37 thousand for 2^28), so
    that it is exact in float32 in whatever order; no element is 0, so that each one counts.
    """
    x = rng.random(int(case["n"]), dtype=xp.float32)
    x *= 4
    xp.floor(x, out=x)
    x *= 2
    x -= 3
    return {"x": x}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """The prefix sums in float64, and a scale that leaves no room for a wrong whole number."""
    expected = xp.cumsum(inputs["x"], dtype=xp.float64)
    return {"out": (expected, xp.abs(expected) + 1)}
