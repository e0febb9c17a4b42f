"""Inputs and reference of the relaxation, which is its fixed point. `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # cupy's arrays and generators are also accepted
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns x [n], float32, uniform in [1, 2): away from zero, so that a relative tolerance is meaningful."""
    return {"x": rng.random(int(case["n"]), dtype=xp.float32) + xp.float32(1)}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns y [n] in float64 and the scale of its rounding error, which is its magnitude."""
    expected = inputs["x"].astype(xp.float64)
    return {"y": (expected, xp.abs(expected))}
