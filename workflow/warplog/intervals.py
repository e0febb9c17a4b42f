"""Time that parts of a GPU were busy: its copy engines and its SMs, and how much of one the others hid."""

from collections.abc import Iterable, Sequence

Interval = tuple[float, float]  # start and end


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same time as disjoint intervals in order; touching ones become one, empty ones vanish."""
    joined: list[Interval] = []
    for start, end in sorted(i for i in intervals if i[1] > i[0]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def busy(intervals: Iterable[Interval]) -> float:
    """Time in which at least one of the intervals runs."""
    return sum(end - start for start, end in union(intervals))


def common(some: Iterable[Interval], others: Iterable[Interval]) -> float:
    """Time in which one of `some` and one of `others` run."""
    left, right = union(some), union(others)
    total, i, j = 0.0, 0, 0
    while i < len(left) and j < len(right):
        total += max(0.0, min(left[i][1], right[j][1]) - max(left[i][0], right[j][0]))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return total


def of_launch(
    kernels: Sequence[Interval], to_device: Sequence[Interval], to_host: Sequence[Interval]
) -> dict[str, float]:
    """Metrics of a launch that copies, in the unit of the intervals; at least one interval is needed.

    A copy is hidden while a kernel or a copy in the other direction runs: each direction has an engine of its
    own. The longest engine is the least that the launch can take; `longest_engine_pct` of 100 is perfect.
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
