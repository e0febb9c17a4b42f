"""Finds the NVTX push/pop ranges that enclose API calls."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class NvtxRange:
    """A push/pop range of a thread; `end_ns` is infinite if it was never popped."""

    name: str
    start_ns: int
    end_ns: float
    thread: int


def enclosing(
    calls: Iterable[tuple[int, int, int, int]], ranges: Iterable[NvtxRange]
) -> Mapping[int, tuple[str, ...]]:
    """Returns the names of the ranges that enclose each call, outermost first, by the key of the call.

    `calls` are tuples (key, thread, start_ns, end_ns). A range encloses a call of the same thread that starts and
    ends within it. The calls and ranges of a thread are processed in one pass, in order of their start.
    """
    by_thread: dict[int, list[NvtxRange]] = defaultdict(list)
    for span in ranges:
        by_thread[span.thread].append(span)
    for spans in by_thread.values():
        spans.sort(key=lambda span: (span.start_ns, -span.end_ns))
    found: dict[int, tuple[str, ...]] = {}
    position: dict[int, int] = defaultdict(int)
    active: dict[int, list[NvtxRange]] = defaultdict(list)
    for key, thread, start, end in sorted(calls, key=lambda call: call[2]):
        spans = by_thread.get(thread, [])
        while position[thread] < len(spans) and spans[position[thread]].start_ns <= start:
            active[thread].append(spans[position[thread]])
            position[thread] += 1
        active[thread] = [span for span in active[thread] if span.end_ns >= start]
        found[key] = tuple(span.name for span in active[thread] if span.end_ns >= end)
    return found


def end_of(value: int | None) -> float:
    """Returns the end of a range, in ns; None, the stored value of a range that was never popped, gives infinity."""
    return math.inf if value is None else float(value)
