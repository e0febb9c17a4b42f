"""The trace recorded by nsys: events, the kernels of a launch, their times, and the overlap of copies."""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Literal

from warplog.parsers.nsys.sqlite import NsysEvent, NsysKernel, NsysReport
from warplog.records.extract import Event, Launched

CASE, LAUNCH = "case:", "launch:"
_MOST_EVENTS = 1000  # of a case; a launch may have hundreds of copies and kernels


def named(ranges: Iterable[str], prefix: str) -> str | None:
    """Returns the part after `prefix` of the innermost range name that starts with it; None if there is none."""
    return next((name[len(prefix) :] for name in reversed(tuple(ranges)) if name.startswith(prefix)), None)


def events_of(report: NsysReport, cases: Sequence[str]) -> list[Event]:
    """Returns kernels, copies and the calls that launched them, in microseconds since the first event of all cases.

    Only the first launches of a case are kept (at most 1000 events, unless its first launch alone has more).
    """
    kinds: list[tuple[Literal["kernel", "memcpy", "memset", "api"], Sequence[NsysEvent]]] = [
        ("kernel", report.kernels),
        ("memcpy", report.memcpys),
        ("memset", report.memsets),
        ("api", report.calls),
    ]
    traced = [
        (event.start_ns, case, kind, event)
        for kind, own in kinds
        for event in own
        if (case := named(event.ranges, CASE) or "") in cases
    ]
    traced.sort(key=lambda item: item[0])
    events = [
        Event(
            case=case,
            name=event.short_name if isinstance(event, NsysKernel) else event.name,
            kind=kind,
            start_us=(start - traced[0][0]) * 1e-3,
            duration_us=event.duration_ns * 1e-3,
            stream=None if kind == "api" else event.stream,
            launch=int(number) if (number := named(event.ranges, LAUNCH) or "").isdecimal() else None,
        )
        for start, case, kind, event in traced
    ]
    sizes = Counter((event.case, event.launch) for event in events)
    taken: Counter[str] = Counter()
    kept = set()
    for (case, launch), size in sizes.items():
        if taken[case] == 0 or taken[case] + size <= _MOST_EVENTS:
            kept.add((case, launch))
        taken[case] += size
    return [event for event in events if (event.case, event.launch) in kept]


def launched_kernels(case: str, events: Sequence[NsysEvent]) -> list[Launched]:
    """Returns the distinct kernels of a case in the order of their first launch; `order` also counts copies."""
    first: dict[str, NsysEvent] = {}
    for event in events:
        first.setdefault(event.name, event)
    return [
        Launched(
            case=case,
            order=order,
            kernel=kernel.name,
            grid=kernel.grid,
            block=kernel.block,
            registers_per_thread=kernel.registers,
            shared_bytes=kernel.static_shared_bytes + kernel.dynamic_shared_bytes,
        )
        for order, kernel in enumerate(first.values())
        if isinstance(kernel, NsysKernel)
    ]


Interval = tuple[float, float]  # start and end


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Returns the union as sorted, disjoint intervals; adjacent ones are merged, empty ones dropped."""
    joined: list[Interval] = []
    for start, end in sorted(i for i in intervals if i[1] > i[0]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def busy(intervals: Iterable[Interval]) -> float:
    """Returns the total time covered by at least one of the intervals."""
    return sum(end - start for start, end in union(intervals))


def common(some: Iterable[Interval], others: Iterable[Interval]) -> float:
    """Returns the total time covered by both an interval of `some` and an interval of `others`."""
    left, right = union(some), union(others)
    total, i, j = 0.0, 0, 0
    while i < len(left) and j < len(right):
        total += max(0.0, min(left[i][1], right[j][1]) - max(left[i][0], right[j][0]))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return total


def overlap_metrics(
    kernels: Sequence[Interval], to_device: Sequence[Interval], to_host: Sequence[Interval]
) -> dict[str, float]:
    """Computes the overlap metrics of a launch with copies, in the unit of the intervals; requires one interval.

    A copy is hidden while a kernel or a copy in the other direction runs; each direction has its own copy engine.
    The busy time of the busiest engine is a lower bound of the launch's time: `longest_engine_pct` of 100 is optimal.
    """
    everything = [*kernels, *to_device, *to_host]
    wall = max(end for _, end in everything) - min(start for start, _ in everything)
    engines = [busy(kernels), busy(to_device), busy(to_host)]
    copies = engines[1] + engines[2]
    hidden = common(to_device, [*kernels, *to_host]) + common(to_host, [*kernels, *to_device])
    return {
        "wall_us": wall,
        "kernel_us": engines[0],
        "to_device_us": engines[1],
        "to_host_us": engines[2],
        "copy_us": busy([*to_device, *to_host]),
        "copy_hidden_pct": 100 * hidden / copies if copies else 0.0,
        "longest_engine_pct": 100 * max(engines) / wall if wall else 0.0,
    }


WHOLE, PART = "nsys_duration_us", "nsys_kernel_duration_us"
_TO_DEVICE, _TO_HOST = "Host-to-Device", "Device-to-Host"
_US = 1e-3  # nsys reports nanoseconds


def launch_metrics(launches: Sequence[Sequence[NsysEvent]]) -> list[tuple[str, int, str, float]]:
    """Returns tuples (kernel or copy, its number, metric, value) with the medians over the launches.

    `launches` holds the events of each launch. The whole launch, named "", has the time during which any event ran
    and, if it copies, the metrics of `overlap_metrics`. The durations of a kernel or copy that runs several times in
    a launch are added.
    """
    whole = median(busy(map(_span, events)) for events in launches) * _US
    rows = [("", 0, WHOLE, whole)]
    overlaps = [_overlap(events) for events in launches if {e.name for e in events} & {_TO_DEVICE, _TO_HOST}]
    for metric in overlaps[0] if overlaps else ():
        unit = _US if metric.endswith("_us") else 1.0
        rows.append(("", 0, metric, median(values[metric] for values in overlaps) * unit))
    names = dict.fromkeys(event.name for events in launches for event in events)
    for number, name in enumerate(names):
        durations = [[e.duration_ns for e in events if e.name == name] for events in launches]
        rows.append((name, number, PART, median(sum(times) for times in durations if times) * _US))
    return rows


def _overlap(events: Sequence[NsysEvent]) -> dict[str, float]:
    return overlap_metrics(
        [_span(e) for e in events if isinstance(e, NsysKernel)],
        [_span(e) for e in events if e.name == _TO_DEVICE],
        [_span(e) for e in events if e.name == _TO_HOST],
    )


def _span(event: NsysEvent) -> Interval:
    return event.start_ns, event.start_ns + event.duration_ns
