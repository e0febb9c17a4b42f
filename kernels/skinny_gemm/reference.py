"""Inputs and reference result of C = A*W^T in bf16 with few rows of A; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from warplog.reference import round_to_bfloat16

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator

_ROUNDING_BF16 = 2.0**-8  # half the spacing of numbers above 1: 8 significant bits
_ROUNDING_FP32 = 2.0**-24
_SUM_FACTOR = 2.0


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns A [M, K] and W [N, K] in bf16, uniform in [-1, 1]."""
    m, n, k = int(case["M"]), int(case["N"]), int(case["K"])
    uniform = {
        name: 2 * rng.random(shape, dtype=xp.float32) - 1 for name, shape in (("A", (m, k)), ("W", (n, k)))
    }
    return {name: round_to_bfloat16(xp, values) for name, values in uniform.items()}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the result in float64 and the scale of its error, in units of bf16's rounding error.

    A kernel adds up in fp32, whose error is about r32 * sqrt(K) * |A| |W|^T, and rounds the sum E once, to bf16: by up
    to r16 * |E|. family.yaml accepts 1.5 times that, which is less than the error of truncation.
    """
    a, w = inputs["A"].astype(xp.float64), inputs["W"].astype(xp.float64)
    expected = a @ w.T
    sums = xp.abs(a) @ xp.abs(w).T
    sums *= _SUM_FACTOR * _ROUNDING_FP32 / _ROUNDING_BF16 * float(case["K"]) ** 0.5
    return {"C": (expected, xp.abs(expected) + sums)}
