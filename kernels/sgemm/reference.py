"""Inputs and the reference answer of C = alpha*A*B + beta*C; `xp` is cupy, or numpy where there is no GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # arrays and generators of cupy serve as well
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """A [M, K], B [K, N] and C [M, N], float32, uniform in [-1, 1).

    Where beta is 0, nobody may read C: every bit of it is set then, a NaN that no arithmetic makes.
    """
    m, n, k = int(case["M"]), int(case["N"]), int(case["K"])
    shapes = {"A": (m, k), "B": (k, n), "C": (m, n)}
    inputs = {name: 2 * rng.random(shape, dtype=xp.float32) - 1 for name, shape in shapes.items()}
    if case["beta"] == 0:
        inputs["C"].view(xp.uint32)[...] = 0xFFFFFFFF
    return inputs


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """The answer in float64, and what its rounding error is relative to: |alpha| |A| |B| + |beta| |C|."""
    a, b = inputs["A"].astype(xp.float64), inputs["B"].astype(xp.float64)
    alpha, beta = float(case["alpha"]), float(case["beta"])
    expected, scale = alpha * (a @ b), abs(alpha) * (xp.abs(a) @ xp.abs(b))
    if beta != 0:  # otherwise C may hold NaN, and 0 * NaN is NaN
        c = inputs["C"].astype(xp.float64)
        expected, scale = expected + beta * c, scale + abs(beta) * xp.abs(c)
    return {"C": (expected, scale)}
