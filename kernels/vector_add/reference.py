"""Inputs and reference result of out = x + y; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns x [n] and y [n], float32, uniform in [-1, 1)."""
    inputs = {name: rng.random(int(case["n"]), dtype=xp.float32) for name in ("x", "y")}
    for values in inputs.values():  # in place, as an array may have 1 GiB
        values *= 2
        values -= 1
    return inputs


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the result in float64 and the scale of its rounding error, its magnitude."""
    expected = inputs["x"].astype(xp.float64) + inputs["y"]
    return {"out": (expected, xp.abs(expected))}
