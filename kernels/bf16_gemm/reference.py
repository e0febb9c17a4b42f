"""Inputs and the reference answer of C = A*B^T in bf16; `xp` is cupy, or numpy where there is no GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # arrays and generators of cupy serve as well
    from numpy import ndarray
    from numpy.random import Generator

_ROUNDING_BF16 = 2.0**-8  # half of what separates 1 from its neighbour: 8 significant bits
_ROUNDING_FP32 = 2.0**-24
_SUM_FACTOR = 2.0


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """A [M, K] and B [N, K], uniform in [-1, 1] times 2^a_exponent and 2^b_exponent.

    They are float32 that hold values of bf16, so that storing them loses nothing.
    """
    m, n, k = int(case["M"]), int(case["N"]), int(case["K"])
    shapes = {"A": (m, k), "B": (n, k)}
    scales = {"A": 2.0 ** case["a_exponent"], "B": 2.0 ** case["b_exponent"]}
    uniform = {name: 2 * rng.random(shape, dtype=xp.float32) - 1 for name, shape in shapes.items()}
    return {name: to_bf16(xp, xp.float32(scales[name]) * values) for name, values in uniform.items()}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """The answer in float64, and what its rounding error is relative to, in units of bf16's rounding.

    A kernel sums in fp32 and rounds once, to bf16. With S its sum and E the exact one,
        |out - E| <= |out - S| + |S - E| <= r16 * |S| + |S - E| <= r16 * |E| + (1 + r16) * |S - E|,
    and |S - E| is some r32 * sqrt(K) * (|A| |B|^T), as for every fp32 sum in this project. So the scale is
        |E| + factor * (r32 / r16) * sqrt(K) * (|A| |B|^T),
    and family.yaml asks for |out - E| <= 1.5 * r16 * scale: a half more than rounding to nearest needs, and less than
    what truncation would need (2 * r16). Tensor cores truncate the sum at each step instead of rounding it; for sums of
    terms of either sign, as here, that stays far below the bound.
    """
    a, b = inputs["A"].astype(xp.float64), inputs["B"].astype(xp.float64)
    expected = a @ b.T
    magnitude = xp.abs(a) @ xp.abs(b).T
    magnitude *= _SUM_FACTOR * _ROUNDING_FP32 / _ROUNDING_BF16 * float(case["K"]) ** 0.5
    return {"C": (expected, xp.abs(expected) + magnitude)}


def to_bf16(xp: ModuleType, values: ndarray) -> ndarray:
    """Finite float32 values rounded to bf16, to nearest and to even at a tie, still as float32."""
    bits = values.view(xp.uint32)
    last_kept = (bits >> xp.uint32(16)) & xp.uint32(1)
    rounded = (bits + xp.uint32(0x7FFF) + last_kept) & xp.uint32(0xFFFF0000)
    return rounded.view(xp.float32)
