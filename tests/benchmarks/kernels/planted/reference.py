"""Inputs and the reference answer of the relaxation: its fixed point. `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # arrays and generators of cupy serve as well
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """x [n], float32, uniform in [1, 2): far from zero, where a relative tolerance means something."""
    return {"x": rng.random(int(case["n"]), dtype=xp.float32) + xp.float32(1)}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """The answer in float64, and what its rounding error is relative to: its own magnitude."""
    expected = inputs["x"].astype(xp.float64)
    return {"y": (expected, xp.abs(expected))}
