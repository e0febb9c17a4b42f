"""Inputs and reference result of a transposition; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns in [M, N], float32, uniform in [-1, 1)."""
    values = rng.random((int(case["M"]), int(case["N"])), dtype=xp.float32)
    values *= 2
    values -= 1
    return {"in": values}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the result in float64 and as scale its magnitude, at which only exact results pass."""
    expected = inputs["in"].T.astype(xp.float64)
    return {"out": (expected, xp.abs(expected))}
