"""Inputs and reference result of chases and streams; `xp` is cupy, or numpy without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also stands for the arrays and generators of cupy
    from numpy import ndarray
    from numpy.random import Generator

LINE = 32  # elements from node to node


def make_inputs(xp: ModuleType, rng: Generator, case: Mapping[str, float]) -> dict[str, ndarray]:
    """Returns ring [n], int32: of a stream values in 0..15, of a chase one cycle through all nodes in random order.

    Every 32nd element is a node and holds the index of the next; the others are 0.
    """
    n = int(case["n"])
    if case["rounds"]:
        return {"ring": (16 * rng.random(n, dtype=xp.float32)).astype(xp.int32)}
    order = LINE * xp.argsort(rng.random(-(-n // LINE)))
    ring = xp.zeros(n, dtype=xp.int32)
    ring[order] = xp.roll(order, -1).astype(xp.int32)
    return {"ring": ring}


def reference(
    xp: ModuleType, inputs: Mapping[str, ndarray], case: Mapping[str, float]
) -> dict[str, tuple[ndarray, ndarray]]:
    """Returns the sum of all that is read, or the last place, in float64, and a scale at which only exact ones pass."""
    ring = inputs["ring"]
    if case["rounds"]:
        out = int(case["rounds"]) * ring.sum(dtype=xp.int64, keepdims=True)
    else:
        out = LINE * _end(xp, ring[::LINE] // LINE, int(case["hops"]))
    expected = out.astype(xp.float64)
    return {"out": (expected, expected + 1)}


def _end(xp: ModuleType, after: ndarray, hops: int) -> ndarray:
    """Returns the node after `hops` hops from node 0, by doubling: `after` of 1, 2, 4 and so on hops."""
    at = xp.zeros(1, dtype=xp.int64)
    while hops:
        if hops % 2:
            at = after[at]
        after = after[after]
        hops //= 2
    return at
