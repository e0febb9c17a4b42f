"""Inputs and the reference answer of a copy between host and device; `xp` is cupy, or numpy where there is no GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # arrays and generators of cupy serve as well
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """source [n], float32, uniform in [0, 1)."""
    return {"source": rng.random(int(case["n"]), dtype=xp.float32)}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """The source itself, and a scale of zero: a copy rounds nothing."""
    expected = inputs["source"].astype(xp.float64)
    return {"target": (expected, xp.zeros_like(expected))}
