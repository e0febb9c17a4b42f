"""Inputs and reference result of a layer normalisation over rows; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns x [rows, columns], gamma and beta [columns].

    x is uniform in offset +- 2. The first and the last element of a row and one in between are sqrt(columns) / 2 from
    the offset, up or down, so that each has about a tenth of the variance, and a kernel that leaves out any of them is
    refused. If `constant` is 1, all elements of row r are r % 7 - 3: the variance is 0, and all sums are exact. gamma
    is uniform in 1 +- 0.5, beta in +-1. The values are exact in the type of the case.
    """
    rows, columns = int(case["rows"]), int(case["columns"])
    x = rng.random((rows, columns), dtype=xp.float32)
    x *= 4
    x += case["offset"] - 2
    row = xp.arange(rows)
    up_or_down = 1 - 2 * (row % 2)
    between = (rng.random(rows) * columns).astype(xp.int64)
    for column, sign in ((0, up_or_down), (columns - 1, 1), (between, -up_or_down)):
        x[row, column] = case["offset"] + sign * columns**0.5 / 2
    if case["constant"]:
        x[:] = (row % 7 - 3)[:, None]
    gamma = rng.random(columns, dtype=xp.float32) + xp.float32(0.5)
    beta = 2 * rng.random(columns, dtype=xp.float32) - 1
    inputs = {"x": x, "gamma": gamma, "beta": beta}
    return (
        inputs if case["element_bytes"] == 4 else {name: to_bf16(xp, value) for name, value in inputs.items()}
    )


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the result in float64 and the scale of its error, in units of fp32's rounding error u = 2^-24.

    With n columns, z the normalised element, d the root of variance + epsilon and m the mean of |x|: the mean of n
    numbers is off by up to u sqrt(n) m, which moves z by (m / d) of that; the sum of n squares, in any order, is off by
    u sqrt(n) of itself, and z by half of that; each operation adds u. A variance that was computed as E[x^2] - E[x]^2
    would be off by u (m / d)^2. The result is rounded once more, in bf16 by 2^-8 = 2^16 u. family.yaml doubles all of
    it, but for bf16 so that rounding to nearest has a factor of 1.5, which refuses truncation.
    """
    x, gamma, beta = (inputs[name].astype(xp.float64) for name in ("x", "gamma", "beta"))
    root = float(case["columns"]) ** 0.5
    magnitude = xp.abs(x).mean(axis=1, keepdims=True)
    x -= x.mean(axis=1, keepdims=True)
    deviation = ((x * x).mean(axis=1, keepdims=True) + case["epsilon"]) ** 0.5
    x /= deviation
    scale = xp.abs(x)
    scale *= 4 + root / 2
    scale += magnitude / deviation * (2 + root / 2)
    scale *= xp.abs(gamma)
    scale += xp.abs(beta)
    x *= gamma
    x += beta
    scale += xp.abs(x) * (1.0 if case["element_bytes"] == 4 else 0.75 * 2.0**16)
    return {"y": (x, scale)}


def to_bf16(xp: ModuleType, values: ndarray) -> ndarray:
    """Rounds finite float32 values to bf16, to nearest with ties to even; returns float32."""
    bits = values.view(xp.uint32)
    last_kept = (bits >> xp.uint32(16)) & xp.uint32(1)
    rounded = (bits + xp.uint32(0x7FFF) + last_kept) & xp.uint32(0xFFFF0000)
    return rounded.view(xp.float32)
