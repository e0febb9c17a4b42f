"""Inputs by pattern and reference result of C = A*B^T in bf16; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from warplog.reference import round_to_bfloat16

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator

_ZEROS = 1  # the pattern
_ROUNDING_BF16 = 2.0**-8
_ROUNDING_FP32 = 2.0**-24
_SUM_FACTOR = 2.0


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns A [M, K] and B [N, K], float32 arrays of bf16 values: uniform in [-1, 1], or zeros if `pattern` is 1."""
    m, n, k = int(case["M"]), int(case["N"]), int(case["K"])
    return {
        name: _filled(xp, rng, shape, int(case["pattern"]))
        for name, shape in {"A": (m, k), "B": (n, k)}.items()
    }


def _filled(xp: ModuleType, rng: Generator, shape: tuple[int, int], pattern: int) -> ndarray:
    if pattern == _ZEROS:
        return xp.zeros(shape, dtype=xp.float32)
    return round_to_bfloat16(xp, 2 * rng.random(shape, dtype=xp.float32) - 1)


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the result in float64 and the scale of its error, in units of bf16's rounding error.

    Rounding the result E to bf16 has an error of up to r16 * |E|; the fp32 sum before that has an error of about
    r32 * sqrt(K) * (|A| |B|^T). family.yaml allows 1.5 times the sum of both, which truncation would exceed.
    """
    a, b = inputs["A"].astype(xp.float64), inputs["B"].astype(xp.float64)
    expected = a @ b.T
    magnitude = xp.abs(a) @ xp.abs(b).T
    magnitude *= _SUM_FACTOR * _ROUNDING_FP32 / _ROUNDING_BF16 * float(case["K"]) ** 0.5
    return {"C": (expected, xp.abs(expected) + magnitude)}
