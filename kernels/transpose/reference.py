"""Inputs and the reference answer of a transposition; `xp` is cupy, or numpy where there is no GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # arrays and generators of cupy serve as well
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """in [M, N], float32, uniform in [-1, 1)."""
    values = rng.random((int(case["M"]), int(case["N"])), dtype=xp.float32)
    values *= 2
    values -= 1
    return {"in": values}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """The answer in float64, and what its error is relative to: itself, so that no bit may differ."""
    expected = inputs["in"].T.astype(xp.float64)
    return {"out": (expected, xp.abs(expected))}
