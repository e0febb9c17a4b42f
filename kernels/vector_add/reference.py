"""Inputs and the reference answer of out = x + y; `xp` is cupy, or numpy where there is no GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # arrays and generators of cupy serve as well
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """x [n] and y [n], float32, uniform in [-1, 1)."""
    inputs = {name: rng.random(int(case["n"]), dtype=xp.float32) for name in ("x", "y")}
    for values in inputs.values():  # in place: an array may be 1 GiB
        values *= 2
        values -= 1
    return inputs


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """The answer in float64, and what its rounding error is relative to: its own magnitude."""
    expected = inputs["x"].astype(xp.float64) + inputs["y"]
    return {"out": (expected, xp.abs(expected))}
