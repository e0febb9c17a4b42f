"""Inputs and reference result of multiply-adds; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns x [32 * warps], float32, integers in 0..255."""
    return {"x": xp.floor(256 * rng.random(32 * int(case["warps"]), dtype=xp.float32))}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns x plus 1 per multiply-add in float64 and a scale of zero, as all numbers are integers below 2^24."""
    expected = inputs["x"].astype(xp.float64) + case["fmas"]
    return {"y": (expected, xp.zeros_like(expected))}
