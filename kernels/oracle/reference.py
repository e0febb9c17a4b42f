"""Inputs of a probe and what it must leave behind; `xp` is cupy, or numpy where there is no GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # arrays and generators of cupy serve as well
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """x [n], float32, integers from 0 to 255: all that the probes compute with them is exact."""
    values = rng.random(int(case["n"]), dtype=xp.float32)
    values *= 256
    return {"x": xp.floor(values)}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """y = times * x + adds in float64, relative to itself, so that no bit may differ."""
    expected = case["times"] * inputs["x"].astype(xp.float64) + case["adds"]
    return {"y": (expected, xp.abs(expected))}
