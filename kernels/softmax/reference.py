"""Inputs and reference result of a softmax over rows; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator

_FLUSHED = 2.0**-103  # times 2^-23 (family.yaml: 2 * 2^-24), the smallest normal number of fp32 and bf16


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns x [rows, columns]: logits uniform in offset +- spread, and three peaks per row.

    The first and the last logit and one in between are so large that each holds about a quarter of the sum, so that
    a kernel that leaves out any of them is refused. If `masked` is 1, row r of R has -inf beyond its first
    1 + r * (columns - 1) / R logits, as under a causal mask, and its last peak before that. The values are exact in the
    type of the case.
    """
    rows, columns = int(case["rows"]), int(case["columns"])
    offset, spread = case["offset"], case["spread"]
    x = rng.random((rows, columns), dtype=xp.float32)
    x *= 2 * spread
    x += offset - spread
    row = xp.arange(rows)
    visible = 1 + row * (columns - 1) // rows if case["masked"] else xp.full(rows, columns)
    peak = offset + math.log(columns * math.sinh(spread) / spread)
    between = (rng.random(rows) * visible).astype(xp.int64)
    for column in (0, visible - 1, between):
        x[row, column] = peak
    if case["masked"]:
        x[xp.arange(columns)[None, :] >= visible[:, None]] = -math.inf
    return {"x": x if case["element_bytes"] == 4 else to_bf16(xp, x)}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the result in float64 and the scale of its error, in units of fp32's rounding error u = 2^-24.

    With m the largest logit, a kernel rounds x - m and its multiple log2(e), which changes e^(x - m) by about
    2 u |x - m| of its value (Blanchard, Higham and Higham 2021); a sum of n positive terms, in any order, differs by
    about u sqrt(n); exponential, reciprocal and product add a few u. The result is rounded once more, in bf16 by
    2^-8 = 2^16 u. family.yaml doubles all of it, but for bf16 so that rounding to nearest has a factor of 1.5, which
    refuses truncation. Results below the smallest normal number may be 0.
    """
    x = inputs["x"].astype(xp.float64)
    x -= x.max(axis=1, keepdims=True)
    expected = xp.exp(x)
    expected /= expected.sum(axis=1, keepdims=True)
    rounding = 0.0 if case["element_bytes"] == 4 else 0.75 * 2.0**16
    scale = xp.where(expected > 0, -2 * x, 0.0)
    scale += 4 + 2 * float(case["columns"]) ** 0.5 + rounding
    scale *= expected
    scale += _FLUSHED
    return {"y": (expected, scale)}


def to_bf16(xp: ModuleType, values: ndarray) -> ndarray:
    """Rounds float32 values that are not NaN to bf16, to nearest with ties to even; returns float32."""
    bits = values.view(xp.uint32)
    last_kept = (bits >> xp.uint32(16)) & xp.uint32(1)
    rounded = (bits + xp.uint32(0x7FFF) + last_kept) & xp.uint32(0xFFFF0000)
    return rounded.view(xp.float32)
