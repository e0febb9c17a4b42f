"""Parses the output of `ncu --csv`: the raw page (one row per launch) and the details page (one row per value).

A page of `--print-summary` is a details page whose rows hold minimum, maximum and average over the launches of a
kernel; the averages are read. The application's output and ncu's `==PROF==` lines may appear before, between and after
the rows. Truncation inside a row is detected; for a page that ends after a complete row see `printed.check_whole`. A
last line without line end is read if a quotation mark closes its last cell.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from warplog.core.errors import WarplogError
from warplog.parsers.ncu.printed import PrintedLaunch, check_count, check_whole

_HEADER = re.compile(
    r'^\ufeff?(?:"ID", ?"Process ID"|ID, ?Process ID|"?Process ID"?),.*Kernel Name', re.MULTILINE
)
_NUMBERS = re.compile(r"[0-9]{1,18}")
_SECTION, _METRIC, _UNIT, _VALUE = "Section Name", "Metric Name", "Metric Unit", "Metric Value"
_AVERAGE, _INVOCATIONS = "Average", "Invocations"
_KEY = ("ID", "Process ID", "Host Name")
_SUMMARY_KEY = ("Process ID", "Host Name", "Kernel Name", "Block Size", "Grid Size", "Device", _INVOCATIONS)
_DESCRIPTION = (
    *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream"),
    *("Block Size", "Grid Size", "Device", "CC", _SECTION),
)

# The last label of each section of a details page, under all its names.
_LAST_LABELS = {
    "GPU Speed Of Light Throughput": {"Compute (SM) Throughput", "Compute (SM) [%]", "SM [%]", "SOL SM"},
    "PM Sampling": {"# Pass Groups"},
    "Compute Workload Analysis": {"SM Busy"},
    "Memory Workload Analysis": {"Mem Pipes Busy"},
    "Scheduler Statistics": {"Eligible Warps Per Scheduler"},
    "Warp State Statistics": {"Avg. Not Predicated Off Threads Per Warp"},
    "Instruction Statistics": {"Issued Instructions"},
    "Launch Statistics": {"Waves Per SM"},
    "Occupancy": {"Achieved Active Warps Per SM"},
    "GPU and Memory Workload Distribution": {"Total SMSP Elapsed Cycles"},
    "Source Counters": {"Avg. Divergent Branches"},
}


# Sections after which no section follows whose labels show a metric.
_LAST_SECTIONS = ("Occupancy", "GPU and Memory Workload Distribution", "Source Counters")


@dataclass
class _Table:
    """A header row and its units; `by_id` maps the identity of a details row to its launch.

    `numbers` are the numbers of the launches, with those of their processes.
    """

    header: list[str]
    units: list[str] = field(default_factory=list)
    by_id: dict[tuple[str, ...], PrintedLaunch] = field(default_factory=dict)
    numbers: set[tuple[str, str]] = field(default_factory=set)

    @property
    def is_details(self) -> bool:
        return _METRIC in self.header

    @property
    def value(self) -> str:
        """The column of the values."""
        return _AVERAGE if _INVOCATIONS in self.header else _VALUE


def is_page(text: str) -> bool:
    """Returns whether the text contains the header of an ncu CSV page."""
    return _HEADER.search(text) is not None


def parse(text: str) -> list[PrintedLaunch]:
    """Returns the launches of all pages in the text, in order of appearance.

    Raises:
        WarplogError: if a page is truncated or damaged; the message does not name the file.
    """
    launches: list[PrintedLaunch] = []
    table, row = _Table([]), [""]
    try:
        for row in csv.reader(_lines(text), skipinitialspace=True):
            if row and row[0].lstrip("\ufeff") in {"ID", "Process ID"}:
                table = _table(row)
            elif row:
                launches += _details(row, table) if table.is_details else _raw(row, table)
                check_count(launches)
    except csv.Error as error:
        raise WarplogError(f"is truncated or damaged ({error}); print it again") from None
    if not text.endswith("\n") and not _is_closed(text, row, table, launches):
        raise WarplogError("is truncated: its last line has no line end; print it again")
    check_whole(launches, text)
    if launches and launches[-1].labels:
        _check_section(launches[-1].labels)
    return launches


def _is_closed(text: str, row: Sequence[str], table: _Table, launches: Sequence[PrintedLaunch]) -> bool:
    """Returns whether a page whose last row has no line end is whole.

    The quotation mark after the last value must be there. A details page must also end in a section that ncu prints
    last, or its last launch must have the labels of the launch before: a row can be whole in the middle of a page.
    """
    if not table.is_details or not launches:
        return text.endswith('"')
    is_rule = not row[table.header.index(_METRIC)]
    filled = len(table.header) if is_rule else table.header.index(table.value) + 1
    closed = (len(row) >= filled and text.endswith('"')) or (len(row) > filled and text.endswith('",'))
    labels = launches[-1].labels
    at_end = bool(labels) and labels[-1][0] in _LAST_SECTIONS
    return closed and (at_end or (len(launches) > 1 and labels == launches[-2].labels))


def _check_section(labels: Sequence[tuple[str, str]]) -> None:
    """Checks that the last section of a details page contains the label that ncu prints last in it."""
    section = labels[-1][0]
    held = {label for place, label in labels if place == section}
    if section in _LAST_LABELS and not held & _LAST_LABELS[section]:
        raise WarplogError(f"is truncated: it stops inside the section {section}; print it again")


def _lines(text: str) -> Iterator[str]:
    """Yields the lines of the tables. A line inside a quoted cell always belongs to its row."""
    start = _HEADER.search(text)
    begin = start.start() if start else len(text)
    quoted = text[begin : begin + 2].lstrip("\ufeff").startswith('"')
    is_open = False
    for line in text[begin:].split("\n"):
        unrelated = line.startswith("==") or (quoted and not line.startswith('"'))
        if not is_open and (unrelated or not line.strip()):
            continue
        is_open ^= line.count('"') % 2 == 1
        yield line + "\n"
    if is_open:
        raise csv.Error("a quotation mark is not closed")


def _table(row: list[str]) -> _Table:
    header = [row[0].lstrip("\ufeff"), *row[1:]]
    if len(set(header)) < len(header) or "Kernel Name" not in header:
        raise WarplogError("is damaged: its columns are not those of ncu; print it again")
    table = _Table(header)
    if table.is_details and not {_SECTION, _UNIT, table.value} <= set(header):
        raise WarplogError("is truncated or damaged: its header lacks columns; print it again")
    if not table.is_details and "ID" not in header:
        raise WarplogError("is damaged: its columns are not those of ncu; print it again")
    return table


def _details(row: list[str], table: _Table) -> list[PrintedLaunch]:
    """Adds a row to its launch; returns the launch if it is new. The row of a rule's text has no metric."""
    if not table.header.index(table.value) < len(row) <= len(table.header):
        raise _ragged(row, table)
    cells = dict(zip(table.header, row, strict=False))
    key = tuple(cells.get(name, "") for name in (_KEY if "ID" in cells else _SUMMARY_KEY))
    new = key not in table.by_id
    if "ID" in cells and new:
        _check_new(cells, table)
    elif "ID" in cells and key != next(reversed(table.by_id)):
        raise WarplogError(f"is damaged: rows of the launch {cells['ID'][:20]} are apart; print it again")
    launch = table.by_id.setdefault(key, _launch(cells)) if new else table.by_id[key]
    if cells[_METRIC]:
        launch.add(cells[_SECTION], cells[_METRIC], cells[_UNIT], cells[table.value])
    return [launch] if new else []


def _raw(row: list[str], table: _Table) -> list[PrintedLaunch]:
    """Returns the launch of a row; none for the row under the header, which holds the units."""
    if len(row) != len(table.header):
        raise _ragged(row, table)
    cells = dict(zip(table.header, row, strict=True))
    if not cells["ID"].strip() and not cells["Kernel Name"].strip():
        table.units = row
        return []
    _check_new(cells, table)
    launch = _launch(cells)
    units = table.units or [""] * len(row)
    for name, unit, value in zip(table.header, units, row, strict=True):
        if name not in _DESCRIPTION:
            launch.add_counter(name, unit, value)
    return [launch]


def _check_new(cells: dict[str, str], table: _Table) -> None:
    number = (cells["ID"], cells.get("Process ID", ""))
    if number in table.numbers:
        raise WarplogError(f"is damaged: the launch {number[0][:20]} occurs twice; print it again")
    table.numbers.add(number)


def _launch(cells: dict[str, str]) -> PrintedLaunch:
    major, _, minor = cells.get("CC", "").partition(".")
    known = major.isascii() and minor.isascii() and major.isdigit() and minor.isdigit()
    return PrintedLaunch(
        kernel=cells["Kernel Name"],
        compute_capability=(int(major[:4]), int(minor[:4])) if known else None,
        grid=_size(cells.get("Grid Size", "")),
        block=_size(cells.get("Block Size", "")),
        invocations=int(number[0]) if (number := _NUMBERS.fullmatch(cells.get(_INVOCATIONS, ""))) else None,
    )


def _size(text: str) -> tuple[int, ...] | None:
    sizes = tuple(int(number) for number in _NUMBERS.findall(text))
    return sizes if len(sizes) == 3 else None


def _ragged(row: list[str], table: _Table) -> WarplogError:
    fields = f"{len(row)} of {len(table.header)} fields"
    return WarplogError(f"is truncated or damaged: a row has {fields}; print it again")
