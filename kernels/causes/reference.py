"""Inputs and reference result of a planted pair; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns x [n], int32, rings of indices, whose elements name the next one of their ring; and w [3n], zeros."""
    n = int(case["n"])
    return {
        "x": (xp.arange(n, dtype=xp.int32) + int(case["rings"])) % n,
        "w": xp.zeros(3 * n, dtype=xp.int32),
    }


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns y = x in float64 and as scale its magnitude, at which only exact results pass."""
    expected = inputs["x"].astype(xp.float64)
    return {"y": (expected, xp.abs(expected))}
