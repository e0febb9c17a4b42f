"""Inputs and reference result of C = A*B; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns A [M, K] and B [K, N], float32, uniform in [-1, 1)."""
    m, n, k = int(case["M"]), int(case["N"]), int(case["K"])
    return {
        name: 2 * rng.random(shape, dtype=xp.float32) - 1
        for name, shape in {"A": (m, k), "B": (k, n)}.items()
    }


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the result in float64 and the scale of its rounding error, |A| |B|."""
    a, b = inputs["A"].astype(xp.float64), inputs["B"].astype(xp.float64)
    return {"C": (a @ b, xp.abs(a) @ xp.abs(b))}
