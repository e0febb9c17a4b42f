"""Inputs and reference result of the repeated reads of a tile; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns in [rows, 4 * pieces], integers in [-1000, 1000)."""
    values = rng.random((int(case["rows"]), 4 * int(case["pieces"])), dtype=xp.float32)
    return {"in": (2000 * values).astype(xp.int32) - 1000}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the result in float64 and as scale its magnitude, at which only exact results pass."""
    rows, pieces = int(case["rows"]), int(case["pieces"])
    in_pieces = inputs["in"].reshape(rows, pieces, 4)
    expected = case["rounds"] * in_pieces.transpose(1, 0, 2).reshape(pieces, 4 * rows).astype(xp.float64)
    return {"out": (expected, xp.abs(expected))}
