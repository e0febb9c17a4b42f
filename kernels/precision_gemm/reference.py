"""Inputs and reference result of C = A*B^T in the types of tensor cores; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from warplog.reference import round_to_bfloat16

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator

_FP16, _FP16_ACC16, _BF16, _INT8 = 2, 3, 4, 5  # the types that are converted here (types.cuh)
_INT8_STEPS = 127.0  # that 1 is worth in int8
_LARGEST_INTEGER = (
    2  # of the exact cases: sums of 512 products are whole numbers up to 2048, exact in fp16 too
)


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns A32 [M, K] and B32 [N, K] in float32, and A and B, the same rounded to the type of the case.

    They are uniform in [-1, 1], or whole numbers from -2 to 2 if `exact` is 1. In int8, 1 becomes 127.
    """
    m, n, k = int(case["M"]), int(case["N"]), int(case["K"])
    inputs = {}
    for name, shape in (("A", (m, k)), ("B", (n, k))):
        uniform = rng.random(shape, dtype=xp.float32)
        if case["exact"]:
            values = xp.floor((2 * _LARGEST_INTEGER + 1) * uniform) - xp.float32(_LARGEST_INTEGER)
        else:
            values = 2 * uniform - 1
        inputs |= {f"{name}32": values, name: _converted(xp, values, case)}
    return inputs


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the product of A32 and B32 in float64, in units of C, and |A32| |B32|^T / sqrt(K) in the same units.

    The scale of exact cases is 0: only the exact product is right. Otherwise the error includes the rounding of A and
    B. With u half the spacing of the type above 1, the terms of a result are off by up to 2 u |a b| each, independently
    of one another: by about 0.7 u |A32| |B32|^T / sqrt(K) in sum, and 5.5 times that at the worst of 16 million
    results. A sum that is rounded to the type at each step adds about u sqrt(K), the length of a random walk.
    family.yaml accepts 16 times u, and 16 u sqrt(K) where the type of the sum has no more bits than the terms.
    """
    a, b = inputs["A32"].astype(xp.float64), inputs["B32"].astype(xp.float64)
    unit = _unit(case) ** 2
    expected = a @ b.T
    expected *= unit
    if case["exact"]:
        return {"C": (expected, xp.zeros_like(expected))}
    scale = xp.abs(a) @ xp.abs(b).T
    scale *= unit / float(case["K"]) ** 0.5
    return {"C": (expected, scale)}


def _unit(case: Mapping[str, float]) -> float:
    return _INT8_STEPS if case["type"] == _INT8 and not case["exact"] else 1.0


def _converted(xp: ModuleType, values: ndarray, case: Mapping[str, float]) -> ndarray:
    """Returns values in the type of the case; fp8 is rounded by whoever stores it, and tf32 by the kernels."""
    if case["type"] in (_FP16, _FP16_ACC16):
        return values.astype(xp.float16)
    if case["type"] == _BF16:
        return round_to_bfloat16(xp, values)
    if case["type"] == _INT8:
        return xp.rint(_unit(case) * values).astype(xp.int8)
    return values
