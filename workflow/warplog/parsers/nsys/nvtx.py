"""Which NVTX ranges a call lies in: the calls and the push/pop ranges of one thread, in one sweep."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class NvtxRange:
    """A push/pop range of a thread; `end_ns` is infinite where it was never popped."""

    name: str
    start_ns: int
    end_ns: float
    thread: int


def enclosing(
    calls: Iterable[tuple[int, int, int, int]], ranges: Iterable[NvtxRange]
) -> Mapping[int, tuple[str, ...]]:
    """The names of the ranges around each call, outermost first.

    `calls` are (key, thread, start_ns, end_ns); the result is by key. A range encloses a call of the same
    thread that starts and ends within it.
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
    """The end of a range as stored: None means that it is still open."""
    return math.inf if value is None else float(value)
