"""Parses the output of `nsys stats`, as CSV or text: the summaries of kernels and of memory operations.

The supported reports are cuda_gpu_kern_sum, its variant with sizes, cuda_gpu_mem_time_sum and cuda_gpu_sum (before
2023: gpukernsum, gpumemtimesum and gpusum). A text may contain several; other reports are skipped.
Truncation inside a row is detected. Truncation after a complete row is detected if the printed shares of the time,
which are rounded to 0.1 %, no longer match the times: a loss of rows with a smaller total share goes unnoticed.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod

from warplog.core.errors import WarplogError
from warplog.parsers import units

_CSV_HEADER = re.compile(r'^\ufeff?"?Time ?\(%\)"?,"?Total Time')
_TEXT_HEADER = re.compile(r"^\s*Time ?\(%\)\s+Total Time")
_ANY_HEADER = re.compile(r'^\ufeff?[ \t]*"?Time ?\(%\)"?(?:,"?|[ \t]+)Total Time', re.MULTILINE)
_RULER = re.compile(r"^\s*-{2,}(?:\s+-{2,})+\s*$")
_STARTS_WITH_NUMBER = re.compile(r'\s*"?\d')
_COUNTS = ("instances", "count", "operations")
_NAMES = ("name", "operation")
_ROUNDING_PCT = 0.0501
_MOST_ROWS = 100_000
_MOST_COLUMNS = 32


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
    grid_blocks: int | None
    block_threads: int | None


@dataclass(frozen=True)
class _Row:
    """A row as printed, by lower-case column name without unit, and the unit of its times."""

    cells: dict[str, str]
    time_unit: str


def is_stats(text: str) -> bool:
    """Returns whether the text contains the header of a summary by time."""
    return _ANY_HEADER.search(text) is not None


def parse(text: str) -> list[NsysSummary]:
    """Returns the kernels and memory operations of all summaries, in order of appearance.

    Raises:
        WarplogError: if the text is truncated or damaged, or contains only other summaries; the message does not
            name the file.
    """
    if not text.endswith("\n"):
        raise WarplogError("is truncated: its last line has no line end; print it again")
    lines = text.split("\n")
    found: list[NsysSummary] = []
    for number, line in enumerate(lines):
        header = _header(lines, number)
        if not header or not _counts_gpu_work(header):
            continue
        start = number + 1 if _CSV_HEADER.match(line) else number + 2
        rows = list(_rows(lines, start, header, _spans(lines, number)))
        _check_shares(rows)
        found += [_summary(row) for row in rows]
    if not found:
        raise WarplogError(
            "contains no summary of kernels or memory operations; print one with "
            "`nsys stats -r cuda_gpu_kern_sum,cuda_gpu_mem_time_sum -f csv`"
        )
    return found


def _header(lines: Sequence[str], number: int) -> list[str]:
    """Returns the column names of the table whose header is at this line; empty if it is not a header."""
    line = lines[number].rstrip("\r")
    if _CSV_HEADER.match(line):
        return _cells(line.lstrip("\ufeff"), ())
    spans = _spans(lines, number)
    return [line[start:end].strip() for start, end in spans] if spans else []


def _spans(lines: Sequence[str], number: int) -> list[tuple[int, int]]:
    """Returns the extents of a text table's columns, from the dashes under its header; the last is open-ended."""
    if not _TEXT_HEADER.match(lines[number]) or number + 1 == len(lines):
        return []
    if not _RULER.match(lines[number + 1]):
        return []
    runs = islice(re.finditer(r"-+", lines[number + 1]), _MOST_COLUMNS + 1)
    ends = [(run.start(), run.end()) for run in runs]
    return [*ends[:-1], (ends[-1][0], 1 << 30)]


def _counts_gpu_work(header: Sequence[str]) -> bool:
    """Returns whether the columns are those of kernels or memory operations, not of API calls or NVTX ranges."""
    plain = [name.lower() for name in header]
    if len(plain) > _MOST_COLUMNS or plain[-1] not in _NAMES:
        return False
    return "instances" in plain or (plain[-1] == "operation" and any(name in plain for name in _COUNTS))


def _rows(
    lines: Sequence[str], start: int, header: Sequence[str], spans: Sequence[tuple[int, int]]
) -> Iterator[_Row]:
    names = [name.partition(" (")[0].lower() if index else "share" for index, name in enumerate(header)]
    unit = re.search(r"\((\w+)\)", header[1])
    for number in range(start, len(lines)):
        if not _STARTS_WITH_NUMBER.match(lines[number]):
            break
        if number - start > _MOST_ROWS:
            raise WarplogError(f"contains a summary with more than {_MOST_ROWS} rows")
        cells = _cells(lines[number].rstrip("\r"), spans)
        if len(cells) != len(names) or not cells[-1]:
            raise WarplogError(f"is truncated or damaged: a row has {len(cells)} of {len(names)} fields")
        yield _Row(dict(zip(names, cells, strict=True)), unit[1] if unit else "ns")


def _cells(line: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    if spans:
        return [line[start:end].strip() for start, end in spans]
    try:
        return [cell.strip() for cell in next(csv.reader([line], strict=True))]
    except csv.Error as error:
        raise WarplogError(f"is truncated or damaged ({error}); print it again") from None


def _check_shares(rows: Sequence[_Row]) -> None:
    times = [_number(row, "total time") for row in rows]
    whole = sum(times)
    for row, time in zip(rows, times, strict=True):
        share = _number(row, "share")
        if abs(100.0 * time - share * whole) > _ROUNDING_PCT * whole:
            raise WarplogError(
                "is truncated or damaged: the shares of the time do not match the times; print it again"
            )


def _summary(row: _Row) -> NsysSummary:
    cells = row.cells
    scale = units.to_base(row.time_unit)
    median = units.number(cells.get("med", ""))
    if scale is None:
        raise WarplogError(f"has times in the unknown unit {row.time_unit[:20]!r}")
    return NsysSummary(
        name=cells.get("name") or cells.get("operation", ""),
        is_kernel="name" in cells or "kernel" in cells.get("category", "").lower(),
        launches=int(_number(row, next(name for name in _COUNTS if name in cells))),
        median_us=None if median is None else median * scale * 1e-3,
        grid_blocks=_size(cells.get("gridxyz", "")),
        block_threads=_size(cells.get("blockxyz", "")),
    )


def _number(row: _Row, name: str) -> float:
    value = units.number(row.cells.get(name, ""))
    if value is None or not 0 <= value < 1e18:
        raise WarplogError(
            f"is truncated or damaged: {name} is {row.cells.get(name, '')[:40]!r}; print it again"
        )
    return value


def _size(text: str) -> int | None:
    sizes = [int(size) for size in re.findall(r"\d{1,12}", text)]
    return prod(sizes) if len(sizes) == 3 else None
