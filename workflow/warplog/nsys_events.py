"""What nsys saw, event by event: the timeline, and the kernels that a launch of a variant is made of."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from warplog.parsers.nsys_sqlite import NsysEvent, NsysKernel, NsysReport

Row = dict[str, Any]
CASE, LAUNCH = "case:", "launch:"
_MOST_EVENTS = 1000  # of a case that a timeline keeps; a launch may be hundreds of copies and kernels


def named(ranges: Iterable[str], prefix: str) -> str | None:
    """What follows `prefix` in the name of the innermost range that starts with it."""
    return next((name[len(prefix) :] for name in reversed(tuple(ranges)) if name.startswith(prefix)), None)


def timeline_rows(report: NsysReport, cases: Sequence[str]) -> list[Row]:
    """Kernels, copies and the calls that launched them, in microseconds from the first event of all cases."""
    kinds: list[tuple[str, Sequence[NsysEvent]]] = [
        ("kernel", report.kernels),
        ("memcpy", report.memcpys),
        ("memset", report.memsets),
        ("api", report.calls),
    ]
    events = [
        (event.start_ns, case, kind, event)
        for kind, found in kinds
        for event in found
        if (case := named(event.ranges, CASE)) in cases
    ]
    first = min((start for start, *_ in events), default=0)
    rows = [
        {
            "case": case,
            "name": event.short_name if isinstance(event, NsysKernel) else event.name,
            "kind": kind,
            "start_us": (start - first) * 1e-3,
            "duration_us": event.duration_ns * 1e-3,
            "stream": None if kind == "api" else event.stream,
            "launch": _number(named(event.ranges, LAUNCH)),
        }
        for start, case, kind, event in sorted(events, key=lambda item: item[0])
    ]
    return _of_first_launches(rows)


def _of_first_launches(rows: Sequence[Row]) -> list[Row]:
    """Of each case the rows of its first launches: at least one, then up to 1000 events."""
    sizes = Counter((row["case"], row["launch"]) for row in rows)
    taken: Counter[str] = Counter()
    kept = set()
    for (case, launch), size in sizes.items():
        if taken[case] == 0 or taken[case] + size <= _MOST_EVENTS:
            kept.add((case, launch))
        taken[case] += size
    return [row for row in rows if (row["case"], row["launch"]) in kept]


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def launched_kernels(case: str, events: Sequence[NsysEvent]) -> list[Row]:
    """The different kernels of a case in the order of their first launch; `order` counts copies too."""
    first: dict[str, NsysEvent] = {}
    for event in events:
        first.setdefault(event.name, event)
    return [
        {
            "case": case,
            "order": order,
            "kernel": kernel.name,
            "grid": list(kernel.grid),
            "block": list(kernel.block),
            "registers_per_thread": kernel.registers,
            "shared_bytes": kernel.static_shared_bytes + kernel.dynamic_shared_bytes,
        }
        for order, kernel in enumerate(first.values())
        if isinstance(kernel, NsysKernel)
    ]
