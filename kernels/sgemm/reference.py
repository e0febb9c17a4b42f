"""Inputs and reference result of C = alpha*A*B + beta*C; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns A [M, K], B [K, N] and C [M, N], float32, uniform in [-1, 1).

    If beta is 0, a kernel must not read C. All bits of C are then set: a NaN that arithmetic never produces.
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
    """Returns the result in float64 and the scale of its rounding error, |alpha| |A| |B| + |beta| |C|."""
    a, b = inputs["A"].astype(xp.float64), inputs["B"].astype(xp.float64)
    alpha, beta = float(case["alpha"]), float(case["beta"])
    expected, scale = alpha * (a @ b), abs(alpha) * (xp.abs(a) @ xp.abs(b))
    if beta != 0:  # otherwise C may hold NaN, and 0 * NaN is NaN
        c = inputs["C"].astype(xp.float64)
        expected, scale = expected + beta * c, scale + abs(beta) * xp.abs(c)
    return {"C": (expected, scale)}
