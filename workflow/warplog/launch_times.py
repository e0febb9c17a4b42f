"""What nsys tells of a case's launches: their time, that of each kernel and copy, and what hid the copies."""

from collections.abc import Sequence
from statistics import median

from warplog import intervals
from warplog.parsers.nsys_sqlite import NsysEvent, NsysKernel

WHOLE, PART = "nsys_duration_us", "nsys_kernel_duration_us"
_TO_DEVICE, _TO_HOST = "Host-to-Device", "Device-to-Host"
_US = 1e-3  # nsys counts nanoseconds


def of_case(launches: Sequence[Sequence[NsysEvent]]) -> list[tuple[str, int, str, float]]:
    """(kernel or copy, its number, metric, value): medians over the launches, each with its events.

    Of the whole launch (""), the time in which anything ran, and what `intervals.of_launch` tells where it
    copies. What runs several times in a launch counts with the sum.
    """
    whole = median(intervals.busy(map(_span, events)) for events in launches) * _US
    found = [("", 0, WHOLE, whole)]
    told = [_copying(events) for events in launches if any(_copies(event) for event in events)]
    for metric in told[0] if told else ():
        unit = _US if metric.endswith("_us") else 1.0
        found.append(("", 0, metric, median(values[metric] for values in told) * unit))
    names = dict.fromkeys(event.name for events in launches for event in events)
    for number, name in enumerate(names):
        own = [[e.duration_ns for e in events if e.name == name] for events in launches]
        found.append((name, number, PART, median(sum(times) for times in own if times) * _US))
    return found


def _copies(event: NsysEvent) -> bool:
    return event.name in (_TO_DEVICE, _TO_HOST)


def _copying(events: Sequence[NsysEvent]) -> dict[str, float]:
    return intervals.of_launch(
        [_span(e) for e in events if isinstance(e, NsysKernel)],
        [_span(e) for e in events if e.name == _TO_DEVICE],
        [_span(e) for e in events if e.name == _TO_HOST],
    )


def _span(event: NsysEvent) -> intervals.Interval:
    return event.start_ns, event.start_ns + event.duration_ns
