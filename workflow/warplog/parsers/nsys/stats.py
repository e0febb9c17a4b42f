"""Reads the output of `nsys stats`, as CSV or text: summaries of kernels and memory operations, or a trace of the GPU.

The reports are cuda_gpu_kern_sum, its variant with sizes, cuda_gpu_mem_time_sum, cuda_gpu_sum and cuda_gpu_trace
(before 2023: gpukernsum, gpumemtimesum, gpusum, gputrace). A text may contain several; others are skipped, and so are
traces beside a summary. Truncation inside a row is detected, and truncation after a row of a summary if the printed
shares of the time, which are rounded to 0.1 %, no longer match the times: the loss of a smaller share goes unnoticed.
"""

import re
from collections.abc import Iterator
from math import prod

from warplog.core.errors import WarplogError
from warplog.parsers import units
from warplog.parsers.nsys import rows as nsys_rows
from warplog.parsers.nsys.sqlite import Gpu, NsysEvent, NsysKernel
from warplog.parsers.printed_tables import Table, damaged, number, tables
from warplog.parsers.rows import Row, row

_SUMMARY = re.compile(r'^[ \t]*"?Time ?\(%\)"?(?:,"?|[ \t]+)Total Time', re.MULTILINE)
_TRACE = re.compile(r'^[ \t]*"?Start ?\(\w+\)"?(?:,"?|[ \t]+)Duration.*CorrId', re.MULTILINE)
_COUNTS = ("instances", "count", "operations")
_ROUNDING_PCT = 0.0501
_DEVICE = re.compile(r"(.*\S) \(([0-9]{1,4})\)")
_SHAPE = ("grdx", "grdy", "grdz", "blkx", "blky", "blkz", "reg/trd")
_ROUNDED = ("static_shared_bytes", "nsys_bytes")  # a trace has them in MB with three decimals


def is_stats(text: str) -> bool:
    """Returns whether the text contains the header of a summary by time or of a trace of the GPU."""
    return bool(_SUMMARY.search(text) or _TRACE.search(text))


def rows(text: str) -> Iterator[Row]:
    """Yields the rows of the kernels and memory operations of all summaries in order of appearance, or of all traces.

    Raises:
        WarplogError: if the text is truncated or damaged, or contains only other summaries; the message does not
            name the file.
    """
    if not _SUMMARY.search(text):
        gpus: dict[int, Gpu] = {}
        traces = (
            trace for trace in tables(text, _TRACE) if {"corrid", "device", "name"} <= trace.units.keys()
        )
        events = [_event(trace, line, gpus) for trace in traces for line in trace.rows]
        events.sort(key=lambda event: (not isinstance(event, NsysKernel), event.name == nsys_rows.MEMSET))
        yield from nsys_rows.of_events(events, gpus.__getitem__, rounded=_ROUNDED)
        return
    summaries = [summary for table in tables(text, _SUMMARY) for summary in _summaries(table)]
    if not summaries:
        raise WarplogError(
            "contains no summary of kernels or memory operations; print one with "
            "`nsys stats -r cuda_gpu_kern_sum,cuda_gpu_mem_time_sum -f csv`"
        )
    for launch, (name, values) in enumerate(summaries):
        for metric, value in values.items():
            yield row("nsys", name, launch, metric, value, absent="not in this summary")


def _summaries(table: Table) -> Iterator[tuple[str, dict[str, float | None]]]:
    """Yields name and values of each row; none if the rows are API calls or NVTX ranges.

    Before 2022 there is no median. Text abbreviates long names with an ellipsis.
    """
    *others, last = table.units
    count = next((name for name in _COUNTS if name in others), "")
    if last not in {"name", "operation"} or not (count == "instances" or (count and last == "operation")):
        return
    lines = list(table.rows)
    whole = sum(number(line, "total time") for line in lines)
    for line in lines:
        if abs(100.0 * number(line, "total time") - number(line, "time") * whole) > _ROUNDING_PCT * whole:
            raise damaged("the shares of the time do not match the times")
        is_kernel = last == "name" or "kernel" in line.get("category", "").lower()
        median = None if units.number(line.get("med", "")) is None else table.us(line, "med")
        values = {
            f"nsys_{'kernel_' if is_kernel else ''}duration_us": median,
            "nsys_launches": int(number(line, count)),
            "nsys_total_us": table.us(line, "total time"),
        }
        if is_kernel:
            values |= {"registers_per_thread": None, "static_shared_bytes": None}
            for metric, column in (("grid_blocks", "gridxyz"), ("block_threads", "blockxyz")):
                sizes = [int(size) for size in re.findall(r"[0-9]{1,12}", line.get(column, ""))]
                values[metric] = prod(sizes) if len(sizes) == 3 else None
        yield line[last], values


def _event(table: Table, line: dict[str, str], gpus: dict[int, Gpu]) -> NsysEvent:
    name, device = line["name"], _DEVICE.fullmatch(line["device"])
    index = int(device[2]) if device else 0
    gpus.setdefault(index, Gpu(device[1] if device else line["device"]))
    start, duration = (round(table.us(line, column) * 1e3) for column in ("start", "duration"))
    if not line.get("grdx"):
        return NsysEvent(name, start, duration, 0, (), device=index)
    gx, gy, gz, bx, by, bz, registers = (int(number(line, column)) for column in _SHAPE)
    grid, block = (gx, gy, gz), (bx, by, bz)
    return NsysKernel(name, start, duration, 0, (), name, grid, block, registers, 0, 0, device=index)
