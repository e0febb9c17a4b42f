"""Parses the report cuda_gpu_trace of `nsys stats` (before 2023: gputrace), as CSV or text: one row per operation.

Truncation inside a row is detected; truncation after a complete row is not. The sizes of copies and of shared memory
are printed in MB with three decimals: UNKNOWN lists the metrics that they are too coarse for.
"""

import re
from dataclasses import replace

from warplog.core.errors import WarplogError
from warplog.parsers import units
from warplog.parsers.nsys import printed
from warplog.parsers.nsys.printed import Table
from warplog.parsers.nsys.sqlite import Gpu, NsysEvent, NsysKernel, NsysReport

_HEADER = re.compile(r'\s*"?Start ?\(\w+\)"?(?:,"?|\s+)Duration')
_ANY_HEADER = re.compile(r'^\ufeff?[ \t]*"?Start ?\(\w+\)"?(?:,"?|[ \t]+)Duration.*CorrId', re.MULTILINE)
_DEVICE = re.compile(r"(.*\S) \(([0-9]{1,4})\)")
UNKNOWN = ("static_shared_bytes", "nsys_bytes")
_COPY = re.compile(r"\[CUDA memcpy (.+)\]")
_MEMSET = "[CUDA memset]"
_SIZES = ("grdx", "grdy", "grdz", "blkx", "blky", "blkz")


def is_trace(text: str) -> bool:
    """Returns whether the text contains the header of a trace of the GPU."""
    return _ANY_HEADER.search(text) is not None


def parse(text: str) -> NsysReport:
    """Returns the kernels, copies and memsets of all traces in the text, without NVTX ranges and API calls.

    Raises:
        WarplogError: if the text is truncated or damaged, or contains no operation; the message does not name the
            file.
    """
    gpus: dict[int, Gpu] = {}
    traces = (table for table in printed.tables(text, _HEADER) if {"corrid", "name"} <= set(table.names))
    events = [_event(table, row, gpus) for table in traces for row in table.rows()]
    if not events:
        raise WarplogError("contains no kernel, copy or memset")
    copies = (event for event in events if not isinstance(event, NsysKernel))
    named = [(event, event.name == _MEMSET) for event in copies]
    return NsysReport(
        tool_version="",
        gpus=gpus,
        kernels=tuple(event for event in events if isinstance(event, NsysKernel)),
        memcpys=tuple(_without_brackets(event) for event, is_memset in named if not is_memset),
        memsets=tuple(event for event, is_memset in named if is_memset),
        calls=(),
    )


def _event(table: Table, row: dict[str, str], gpus: dict[int, Gpu]) -> NsysEvent:
    found = _DEVICE.fullmatch(row.get("device", ""))
    device = int(found[2]) if found else 0
    gpus.setdefault(device, Gpu(found[1] if found else row.get("device", "")))
    start, duration = (round(_time_ns(table, row, name)) for name in ("start", "duration"))
    stream = int(units.number(row.get("strm", "")) or 0)
    if not row.get("grdx"):
        return NsysEvent(row["name"], start, duration, stream, (), device=device)
    gx, gy, gz, bx, by, bz = (int(printed.value(row, name)) for name in _SIZES)
    return NsysKernel(
        name=row["name"],
        start_ns=start,
        duration_ns=duration,
        stream=stream,
        ranges=(),
        device=device,
        short_name=row["name"],
        grid=(gx, gy, gz),
        block=(bx, by, bz),
        registers=int(printed.value(row, "reg/trd")),
        static_shared_bytes=0,
        dynamic_shared_bytes=0,
    )


def _time_ns(table: Table, row: dict[str, str], column: str) -> float:
    return printed.value(row, column) * printed.scale_us(table.unit(column)) * 1e3


def _without_brackets(event: NsysEvent) -> NsysEvent:
    found = _COPY.fullmatch(event.name)
    return replace(event, name=found[1] if found else event.name)
