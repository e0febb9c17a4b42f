"""Inputs and the reference answer of the overlap family; `xp` is cupy, or numpy where there is no GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # arrays and generators of cupy serve as well
    from numpy import ndarray
    from numpy.random import Generator

# As the kernel has them: single precision.
DECAY, GAIN = float(np.float32(0.999)), float(np.float32(0.001))


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """x [n], float32, uniform in [-1, 1)."""
    return {"x": 2 * rng.random(int(case["n"]), dtype=xp.float32) - 1}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """x * d^r + g * (1 - d^r) / (1 - d), the closed form of r rounds of x = x * d + g, and a scale of one.

    Every round rounds a value of at most 1 and carries the error on: r roundings at most.
    """
    kept = DECAY ** float(case["rounds"])
    expected = inputs["x"].astype(xp.float64) * kept + GAIN * (1 - kept) / (1 - DECAY)
    return {"y": (expected, xp.ones_like(expected))}
