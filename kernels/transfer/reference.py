"""Inputs and reference result of a copy between host and device; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns source [n], float32, uniform in [0, 1)."""
    return {"source": rng.random(int(case["n"]), dtype=xp.float32)}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the source and a scale of zero, as a copy does not round."""
    expected = inputs["source"].astype(xp.float64)
    return {"target": (expected, xp.zeros_like(expected))}
