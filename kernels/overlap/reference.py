"""Inputs and reference result of the overlap family; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator

# In single precision, as in the kernel.
DECAY, GAIN = float(np.float32(0.999)), float(np.float32(0.001))


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns x [n], float32, uniform in [-1, 1)."""
    return {"x": 2 * rng.random(int(case["n"]), dtype=xp.float32) - 1}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns x * d^r + g * (1 - d^r) / (1 - d), the closed form of r rounds of x = x * d + g, and a scale of one.

    Each round rounds a value of at most 1 and carries its error on, which gives at most r rounding errors.
    """
    kept = DECAY ** float(case["rounds"])
    expected = inputs["x"].astype(xp.float64) * kept + GAIN * (1 - kept) / (1 - DECAY)
    return {"y": (expected, xp.ones_like(expected))}
