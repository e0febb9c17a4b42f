"""Inputs and reference result of C = relu(scale * A*B^T + bias) in bf16; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from warplog.reference import round_to_bfloat16

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator

_ROUNDING_BF16 = 2.0**-8  # half the spacing of numbers above 1: 8 significant bits
_ROUNDING_FP32 = 2.0**-24
_SUM_FACTOR = 2.0


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns A [M, K] and B [N, K] uniform in [-1, 1], bias [N] uniform in [-4, 4]: float32 arrays of bf16 values."""
    m, n, k = int(case["M"]), int(case["N"]), int(case["K"])
    parts = {"A": ((m, k), 1), "B": ((n, k), 1), "bias": ((n,), 4)}
    uniform = {
        name: most * (2 * rng.random(shape, dtype=xp.float32) - 1) for name, (shape, most) in parts.items()
    }
    return {name: round_to_bfloat16(xp, values) for name, values in uniform.items()}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the result in float64 and the scale of its error, in units of bf16's rounding error r16.

    A kernel rounds at most the product P, scale * P and scale * P + bias to bf16, each with an error of up to r16 of
    its value, and the ReLU enlarges no error. So the error is at most r16 times
        2 * |scale * P| + |scale * P + bias|,
    plus that of the fp32 sum, about scale * r32 * sqrt(K) * (|A| |B|^T) as for all fp32 sums in this project.
    """
    a, b = inputs["A"].astype(xp.float64), inputs["B"].astype(xp.float64)
    scale = float(np.float32(case["scale"]))
    scaled = scale * (a @ b.T)
    before_relu = scaled + inputs["bias"].astype(xp.float64)
    of_sum = abs(scale) * (xp.abs(a) @ xp.abs(b).T)
    of_sum *= _SUM_FACTOR * _ROUNDING_FP32 / _ROUNDING_BF16 * float(case["K"]) ** 0.5
    return {"C": (xp.maximum(before_relu, 0), 2 * xp.abs(scaled) + xp.abs(before_relu) + of_sum)}
