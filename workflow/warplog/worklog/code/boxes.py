"""Which lines of a listing are shown at once: all of a short one, otherwise those around the hottest ones.

The lines before and after them are folded away, so that a box fits its content and opens where the samples fall.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

_MOST_LINES = 44  # of a box; a listing with a few more is shown whole
_SPARE = 8
_T = TypeVar("_T")


@dataclass(frozen=True)
class Part(Generic[_T]):
    """Lines that follow each other, shown or folded away."""

    lines: Sequence[_T]
    is_shown: bool


def parts(lines: Sequence[_T], weights: Sequence[float]) -> list[Part[_T]]:
    """Returns the parts of a listing; of a long one, the window with the largest weight is shown.

    `weights` are those of the lines. Of several such windows, the middle one is shown: its weight is in its middle.
    """
    if len(lines) <= _MOST_LINES + _SPARE:
        return [Part(lines, True)]
    starts = range(len(lines) - _MOST_LINES + 1)
    sums = [sum(weights[start : start + _MOST_LINES]) for start in starts]
    best = [start for start in starts if sums[start] >= 0.999 * max(sums)]
    first = best[len(best) // 2]
    last = first + _MOST_LINES
    first, last = first if first > _SPARE else 0, last if last < len(lines) - _SPARE else len(lines)
    candidates = [Part(lines[:first], False), Part(lines[first:last], True), Part(lines[last:], False)]
    return [part for part in candidates if part.lines]
