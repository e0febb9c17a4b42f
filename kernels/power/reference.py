"""Inputs by pattern and reference result of C = A*B^T in bf16; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator

RANDOM, ZEROS, CONSTANT, INTEGERS, SORTED, HALF_ZERO = range(6)
_ROUNDING_BF16 = 2.0**-8
_ROUNDING_FP32 = 2.0**-24
_SUM_FACTOR = 2.0


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns A [M, K] and B [N, K], float32 arrays of bf16 values, filled by the case's pattern.

    0: uniform in [-1, 1]; 1: zeros; 2: ones; 3: integers from -2 to 2; 4: as 0 with sorted rows; 5: as 0 with half of
    the elements zero.
    """
    m, n, k = int(case["M"]), int(case["N"]), int(case["K"])
    return {
        name: _filled(xp, rng, shape, int(case["pattern"]))
        for name, shape in {"A": (m, k), "B": (n, k)}.items()
    }


def _filled(xp: ModuleType, rng: Generator, shape: tuple[int, int], pattern: int) -> ndarray:
    if pattern in (ZEROS, CONSTANT):
        return xp.full(shape, float(pattern == CONSTANT), dtype=xp.float32)
    uniform = rng.random(shape, dtype=xp.float32)
    if pattern == INTEGERS:
        return xp.floor(5 * uniform).clip(0, 4) - xp.float32(2)
    values = _to_bf16(xp, 2 * uniform - 1)
    if pattern == SORTED:
        return xp.sort(values, axis=1)
    if pattern == HALF_ZERO:
        values *= rng.random(shape, dtype=xp.float32) < 0.5
    return values


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


def _to_bf16(xp: ModuleType, values: ndarray) -> ndarray:
    """Rounds finite float32 values to bf16, to nearest with ties to even; returns float32."""
    bits = values.view(xp.uint32)
    last_kept = (bits >> xp.uint32(16)) & xp.uint32(1)
    rounded = (bits + xp.uint32(0x7FFF) + last_kept) & xp.uint32(0xFFFF0000)
    return rounded.view(xp.float32)
