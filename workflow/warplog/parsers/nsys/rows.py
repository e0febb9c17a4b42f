"""The rows of `warplog extract` for traces of Nsight Systems.

A row stands for all launches of a kernel in one configuration on one GPU, or for all operations of one kind
("[CUDA memcpy Host-to-Device]", as `nsys stats` calls it) on one GPU.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod
from statistics import median

from warplog.parsers.nsys.sqlite import Gpu, NsysEvent, NsysKernel, NsysReport
from warplog.parsers.rows import Row, row

_ROUNDED = "printed in MB with three decimals only"
MEMSET = "[CUDA memset]"


def of_report(report: NsysReport) -> Iterator[Row]:
    """Yields the rows of a trace: kernels, then memory operations, each in the order of their first launch."""
    copies = (replace(copy, name=f"[CUDA memcpy {copy.name}]") for copy in report.memcpys)
    memsets = (replace(memset, name=MEMSET) for memset in report.memsets)
    events = (*report.kernels, *copies, *memsets)
    return of_events(events, report.gpu, report.tool_version)


def of_events(
    events: Iterable[NsysEvent], gpu: Callable[[int], Gpu], version: str = "", rounded: Container[str] = ()
) -> Iterator[Row]:
    """Yields the rows of events in the order of their first launch, named as `nsys stats` names them.

    The metrics in `rounded` have no value, because the events have too few digits for them.
    """
    groups: dict[tuple[object, ...], list[NsysEvent]] = defaultdict(list)
    for event in events:
        shape = (event.grid, event.block) if isinstance(event, NsysKernel) else ()
        groups[event.name, event.device, *shape].append(event)
    for number, group in enumerate(groups.values()):
        about = gpu(group[0].device)
        for metric, value in _values(group).items():
            exact = None if metric in rounded else value
            yield row("nsys", group[0].name, number, metric, exact, version, about.name, about.cc, _ROUNDED)


def _values(events: Sequence[NsysEvent]) -> dict[str, float]:
    first, times = events[0], [event.duration_ns * 1e-3 for event in events]
    common = {
        "nsys_launches": float(len(events)),
        "nsys_total_us": sum(event.duration_ns for event in events) * 1e-3,
        "nsys_device": float(first.device),
    }
    if not isinstance(first, NsysKernel):
        return {
            "nsys_duration_us": median(times),
            **common,
            "nsys_bytes": sum(float(e.moved_bytes) for e in events),
        }
    return {
        "nsys_kernel_duration_us": median(times),
        **common,
        "registers_per_thread": first.registers,
        "static_shared_bytes": first.static_shared_bytes,
        "grid_blocks": prod(first.grid),
        "block_threads": prod(first.block),
    }
