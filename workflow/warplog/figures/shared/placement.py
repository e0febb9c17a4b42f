"""Where a label along a line covers neither marks nor other lines. All lengths are in inches."""

from collections.abc import Sequence
from typing import Any

import numpy as np

Points = np.ndarray[Any, np.dtype[np.float64]]  # one point per row
_STEP = 0.04  # distance of the points that stand for a line
_GAP = 0.06  # between a line and its label
_OUTSIDE = 1e6  # weight of a corner beyond the axes, relative to a covered point


def sampled(start: Sequence[float] | Points, end: Sequence[float] | Points) -> Points:
    """Returns points on a line that stand for it as an obstacle."""
    a, b = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    count = max(2, int(np.hypot(*(b - a)) / _STEP))
    return np.asarray(a + np.linspace(0, 1, count)[:, None] * (b - a))


def along(
    start: Sequence[float],
    end: Sequence[float],
    size: tuple[float, float],
    obstacles: Points,
    limits: tuple[float, float],
    late: bool = False,
) -> tuple[Points, Points]:
    """Returns where on the line a text above it begins, and points that stand for the text as an obstacle.

    Of the places that cover fewest obstacles, it is the one closest to the start of the line, or to its end if `late`.
    `size` is width and height of the text, `limits` those of the axes, whose origin is the lower left corner.
    """
    a, b = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    length = float(np.hypot(*(b - a)))
    direction = (b - a) / length
    normal = np.array([-direction[1], direction[0]])
    width, height = size
    corners = np.array([[u, v] for u in (0, width) for v in (_GAP, _GAP + height)]) @ [direction, normal]
    places = np.arange(_GAP, max(length - width, 2 * _GAP), _STEP)
    best, least = a, np.inf
    for place in places[::-1] if late else places:
        anchor = a + place * direction
        u, v = (obstacles - anchor) @ direction, (obstacles - anchor) @ normal
        covered = (np.abs(u - width / 2) < width / 2 + _GAP) & (v > _GAP / 2) & (v < height + 2 * _GAP)
        outside = (anchor + corners < 0) | (anchor + corners > limits)
        cost = float(covered.sum() + _OUTSIDE * outside.sum())
        if cost < least:
            best, least = anchor, cost
    text = [
        sampled(best + v * normal, best + width * direction + v * normal)
        for v in (_GAP, _GAP + height / 2, _GAP + height)
    ]
    return best, np.vstack(text)
