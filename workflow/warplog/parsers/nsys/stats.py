"""Parses the output of `nsys stats`, as CSV or text: the summaries of kernels and of memory operations.

The supported reports are cuda_gpu_kern_sum, its variant with sizes, cuda_gpu_mem_time_sum and cuda_gpu_sum (before
2023: gpukernsum, gpumemtimesum and gpusum). A text may contain several; other reports are skipped.
Truncation inside a row is detected. Truncation after a complete row is detected if the printed shares of the time,
which are rounded to 0.1 %, no longer match the times: a loss of rows with a smaller total share goes unnoticed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from warplog.core.errors import WarplogError
from warplog.parsers import units
from warplog.parsers.nsys import printed
from warplog.parsers.nsys.printed import Table

_HEADER = re.compile(r'\s*"?Time ?\(%\)"?(?:,"?|\s+)Total Time')
_ANY_HEADER = re.compile(r'^\ufeff?[ \t]*"?Time ?\(%\)"?(?:,"?|[ \t]+)Total Time', re.MULTILINE)
_COUNTS = ("instances", "count", "operations")
_NAMES = ("name", "operation")
_ROUNDING_PCT = 0.0501
_MOST_COLUMNS = 32
_TIME, _SHARE = "total time", "time"


@dataclass(frozen=True)
class NsysSummary:
    """One row: a kernel, or a memory operation such as "[CUDA memcpy Host-to-Device]".

    `median_us` is None in reports before 2022, which contain only the average; `grid_blocks` and `block_threads`
    are None if the report does not contain them. Text reports abbreviate long names with an ellipsis.
    """

    name: str
    is_kernel: bool
    launches: int
    median_us: float | None
    total_us: float
    grid_blocks: int | None
    block_threads: int | None


def is_stats(text: str) -> bool:
    """Returns whether the text contains the header of a summary by time."""
    return _ANY_HEADER.search(text) is not None


def parse(text: str) -> list[NsysSummary]:
    """Returns the kernels and memory operations of all summaries, in order of appearance.

    Raises:
        WarplogError: if the text is truncated or damaged, or contains only other summaries; the message does not
            name the file.
    """
    found: list[NsysSummary] = []
    for table in printed.tables(text, _HEADER):
        if _counts_gpu_work(table):
            rows = list(table.rows())
            _check_shares(rows)
            found += [_summary(table, row) for row in rows]
    if not found:
        raise WarplogError(
            "contains no summary of kernels or memory operations; print one with "
            "`nsys stats -r cuda_gpu_kern_sum,cuda_gpu_mem_time_sum -f csv`"
        )
    return found


def _counts_gpu_work(table: Table) -> bool:
    """Returns whether the columns are those of kernels or memory operations, not of API calls or NVTX ranges."""
    names = table.names
    if len(names) > _MOST_COLUMNS or names[-1] not in _NAMES:
        return False
    return "instances" in names or (names[-1] == "operation" and any(name in names for name in _COUNTS))


def _check_shares(rows: Sequence[dict[str, str]]) -> None:
    times = [printed.value(row, _TIME) for row in rows]
    whole = sum(times)
    for row, time in zip(rows, times, strict=True):
        share = printed.value(row, _SHARE)
        if abs(100.0 * time - share * whole) > _ROUNDING_PCT * whole:
            raise WarplogError(
                "is truncated or damaged: the shares of the time do not match the times; print it again"
            )


def _summary(table: Table, row: dict[str, str]) -> NsysSummary:
    scale = printed.scale_us(table.unit(_TIME))
    median = units.number(row.get("med", ""))
    return NsysSummary(
        name=row.get("name") or row.get("operation", ""),
        is_kernel="name" in row or "kernel" in row.get("category", "").lower(),
        launches=int(printed.value(row, next(name for name in _COUNTS if name in row))),
        median_us=None if median is None else median * scale,
        total_us=printed.value(row, _TIME) * scale,
        grid_blocks=_size(row.get("gridxyz", "")),
        block_threads=_size(row.get("blockxyz", "")),
    )


def _size(text: str) -> int | None:
    sizes = [int(size) for size in re.findall(r"[0-9]{1,12}", text)]
    return prod(sizes) if len(sizes) == 3 else None
