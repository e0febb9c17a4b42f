"""Inputs and reference: a*x + y if the case moves three arrays, x if it moves two."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # cupy's arrays and generators are also accepted
    from numpy import ndarray
    from numpy.random import Generator

AXPY_ARRAYS = 3


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns x [n] and y [n], float32, uniform in [-1, 1); if y must not be read, all its bits are set (NaN)."""
    n = int(case["n"])
    inputs = {name: 2 * rng.random(n, dtype=xp.float32) - 1 for name in ("x", "y")}
    if case["arrays"] != AXPY_ARRAYS:
        inputs["y"].view(xp.uint32)[...] = 0xFFFFFFFF
    return inputs


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns out [n] in float64 and the scale of its rounding error: |a x| + |y|; 0 for a copy, which is exact."""
    x = inputs["x"].astype(xp.float64)
    if case["arrays"] != AXPY_ARRAYS:
        return {"out": (x, xp.zeros_like(x))}
    product, y = float(case["a"]) * x, inputs["y"].astype(xp.float64)
    return {"out": (product + y, xp.abs(product) + xp.abs(y))}
