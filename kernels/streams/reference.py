"""Inputs and reference result of the streams family; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator

FACTOR, INCREMENT = 1664525, 1013904223
WORD = 1 << 32


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns x [n], uint32, in steps of 256."""
    return {
        "x": (rng.random(int(case["n"]), dtype=xp.float32) * (1 << 24)).astype(xp.uint32) * xp.uint32(256)
    }


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the upper 24 bits after all rounds of x * FACTOR + INCREMENT modulo 2^32, at a scale of one."""
    factor, increment = rounds_in_one(int(case["rounds"]))
    expected = (inputs["x"].astype(xp.uint64) * factor + increment) % WORD // 256
    return {"y": (expected.astype(xp.float64), xp.ones(expected.shape))}


def rounds_in_one(rounds: int) -> tuple[int, int]:
    """Returns the factor and the increment, modulo 2^32, of that many rounds together, by repeated squaring."""
    factor, increment = 1, 0
    of_one = FACTOR, INCREMENT
    while rounds:
        if rounds % 2:
            factor, increment = factor * of_one[0] % WORD, (increment * of_one[0] + of_one[1]) % WORD
        of_one = of_one[0] ** 2 % WORD, (of_one[1] * of_one[0] + of_one[1]) % WORD
        rounds //= 2
    return factor, increment
