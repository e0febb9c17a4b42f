"""The rows of `warplog extract` for traces and summaries of Nsight Systems.

A row stands for all launches of a kernel in one configuration on one GPU, or for all operations of one kind
("[CUDA memcpy Host-to-Device]", as `nsys stats` calls it) on one GPU.
"""

from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from math import prod
from statistics import median

from warplog.parsers.nsys.sqlite import NsysEvent, NsysKernel, NsysReport
from warplog.parsers.nsys.stats import NsysSummary
from warplog.parsers.rows import Row, row

_ROUNDED = "printed in MB with three decimals only"
_NOT_PRINTED = "not in this summary"


def of_report(report: NsysReport, unknown: Container[str] = ()) -> Iterator[Row]:
    """Yields the rows of a trace: kernels, then memory operations, each in the order of their first launch.

    The metrics in `unknown` have no value, because the source of the report has too few digits for them.
    """
    groups: dict[tuple[object, ...], list[NsysEvent]] = defaultdict(list)
    for event in (*report.kernels, *_operations(report)):
        shape = (event.grid, event.block) if isinstance(event, NsysKernel) else ()
        groups[event.name, event.device, *shape].append(event)
    for number, events in enumerate(groups.values()):
        gpu = report.gpu(events[0].device)
        for metric, value in _values(events).items():
            known = None if metric in unknown else value
            about = (report.tool_version, gpu.name, gpu.cc, _ROUNDED)
            yield row("nsys", events[0].name, number, metric, known, *about)


def of_summaries(summaries: Sequence[NsysSummary]) -> Iterator[Row]:
    """Yields the same rows for the output of `nsys stats`, which lacks some of the values."""
    for number, summary in enumerate(summaries):
        duration = "nsys_kernel_duration_us" if summary.is_kernel else "nsys_duration_us"
        values: dict[str, float | None] = {
            duration: summary.median_us,
            "nsys_launches": summary.launches,
            "nsys_total_us": summary.total_us,
        }
        if summary.is_kernel:
            values |= dict.fromkeys(("registers_per_thread", "static_shared_bytes"))
            values |= {"grid_blocks": summary.grid_blocks, "block_threads": summary.block_threads}
        for metric, value in values.items():
            yield row("nsys", summary.name, number, metric, value, absent=_NOT_PRINTED)


def _operations(report: NsysReport) -> Iterator[NsysEvent]:
    for copy in report.memcpys:
        yield replace(copy, name=f"[CUDA memcpy {copy.name}]")
    for memset in report.memsets:
        yield replace(memset, name="[CUDA memset]")


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
