"""Reference result of the steps; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns no inputs: the kernels only count."""
    return {}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the number of steps of each block, or of all blocks, in float64 and a scale at which only it passes."""
    blocks, steps = int(case["blocks"]), case["warps"] * case["steps"]
    counts = xp.full(1 if case["same"] else blocks, steps * (blocks if case["same"] else 1), dtype=xp.float64)
    return {"y": (counts, counts)}
