"""Inputs and the reference answer: a*x + y where three arrays are moved, x where two are."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # arrays and generators of cupy serve as well
    from numpy import ndarray
    from numpy.random import Generator

AXPY_ARRAYS = 3


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """x [n] and y [n], float32, uniform in [-1, 1); y is NaN in every bit where nobody may read it."""
    n = int(case["n"])
    inputs = {name: 2 * rng.random(n, dtype=xp.float32) - 1 for name in ("x", "y")}
    if case["arrays"] != AXPY_ARRAYS:
        inputs["y"].view(xp.uint32)[...] = 0xFFFFFFFF
    return inputs


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """The answer in float64, and what its rounding error is relative to: |a x| + |y|; 0 for a copy, which is exact."""
    x = inputs["x"].astype(xp.float64)
    if case["arrays"] != AXPY_ARRAYS:
        return {"out": (x, xp.zeros_like(x))}
    product, y = float(case["a"]) * x, inputs["y"].astype(xp.float64)
    return {"out": (product + y, xp.abs(product) + xp.abs(y))}
