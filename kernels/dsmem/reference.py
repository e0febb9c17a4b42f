"""Inputs and reference result of a histogram with many bins; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator

BINS = 65536


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns keys [n], int32 in 0..65535: floor(65536 u^(1 + 15 skew)) for uniform u.

    With skew 0 all bins are equally likely; with skew 1 half of the keys are 0, with skew 1000 nearly all.
    """
    keys = rng.random(int(case["n"]), dtype=xp.float32)
    keys **= 1 + 15 * float(case["skew"])
    keys *= BINS
    return {"keys": xp.minimum(keys.astype(xp.int32), BINS - 1)}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the counts in float64 and a scale at which only exact counts pass."""
    expected = xp.bincount(inputs["keys"], minlength=BINS).astype(xp.float64)
    return {"counts": (expected, expected + 1)}
