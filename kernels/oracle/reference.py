"""Inputs and reference result of a probe; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns x [n], float32, integers from 0 to 255, so that everything the probes compute is exact."""
    values = rng.random(int(case["n"]), dtype=xp.float32)
    values *= 256
    return {"x": xp.floor(values)}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns y = times * x + adds in float64 and as scale its magnitude, at which only exact results pass."""
    expected = case["times"] * inputs["x"].astype(xp.float64) + case["adds"]
    return {"y": (expected, xp.abs(expected))}
