"""Inputs and reference result of a prefix sum; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns x [n], float32, each element -3, -1, 1 or 3.

    The sum of any subset stays far below 2^24 (its standard deviation is sqrt(5 n), 37 thousand for 2^28), so
    that it is exact in float32 in any order; no element is 0, so that a missing or repeated one shows.
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
    """Returns the prefix sums in float64 and a scale at which only exact integers pass."""
    expected = xp.cumsum(inputs["x"], dtype=xp.float64)
    return {"out": (expected, xp.abs(expected) + 1)}
