"""Inputs and reference result of C = A*B^T in bf16; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator

_ROUNDING_BF16 = 2.0**-8  # half the spacing of numbers above 1: 8 significant bits
_ROUNDING_FP32 = 2.0**-24
_SUM_FACTOR = 2.0


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns A [M, K] and B [N, K], uniform in [-1, 1] times 2^a_exponent and 2^b_exponent.

    They are float32 arrays of bf16 values, so that storing them as bf16 is exact.
    """
    m, n, k = int(case["M"]), int(case["N"]), int(case["K"])
    shapes = {"A": (m, k), "B": (n, k)}
    scales = {"A": 2.0 ** case["a_exponent"], "B": 2.0 ** case["b_exponent"]}
    uniform = {name: 2 * rng.random(shape, dtype=xp.float32) - 1 for name, shape in shapes.items()}
    return {name: to_bf16(xp, xp.float32(scales[name]) * values) for name, values in uniform.items()}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the result in float64 and the scale of its error, in units of bf16's rounding error.

    A kernel accumulates in fp32 and rounds once, to bf16. With S its sum and E the exact sum,
        |out - E| <= |out - S| + |S - E| <= r16 * |S| + |S - E| <= r16 * |E| + (1 + r16) * |S - E|,
    and |S - E| is about r32 * sqrt(K) * (|A| |B|^T), as for all fp32 sums in this project. Hence the scale is
        |E| + factor * (r32 / r16) * sqrt(K) * (|A| |B|^T),
    and family.yaml requires |out - E| <= 1.5 * r16 * scale: 1.5 times the error of rounding to nearest, and less than
    the error of truncation (2 * r16). Tensor cores truncate the sum at each step instead of rounding it; for sums of
    terms of both signs, as here, that error stays far below the bound.
    """
    a, b = inputs["A"].astype(xp.float64), inputs["B"].astype(xp.float64)
    expected = a @ b.T
    magnitude = xp.abs(a) @ xp.abs(b).T
    magnitude *= _SUM_FACTOR * _ROUNDING_FP32 / _ROUNDING_BF16 * float(case["K"]) ** 0.5
    return {"C": (expected, xp.abs(expected) + magnitude)}


def to_bf16(xp: ModuleType, values: ndarray) -> ndarray:
    """Rounds finite float32 values to bf16, to nearest with ties to even; returns float32."""
    bits = values.view(xp.uint32)
    last_kept = (bits >> xp.uint32(16)) & xp.uint32(1)
    rounded = (bits + xp.uint32(0x7FFF) + last_kept) & xp.uint32(0xFFFF0000)
    return rounded.view(xp.float32)
