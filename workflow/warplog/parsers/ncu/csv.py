"""Reads what `ncu --csv` prints: the raw page (a row for each launch) and the details page (one for each value).

Around and between the rows may stand the application's output and ncu's own `==PROF==` lines. A cut inside
a row shows; a page that ends after a whole row is checked as `ncu_printed.check_whole` says.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from warplog.core.errors import WarplogError
from warplog.parsers.ncu.printed import PrintedLaunch, check_count, check_whole

_HEADER = re.compile(r'^\ufeff?(?:"ID", ?"Process ID",|ID, ?Process ID,).*Kernel Name', re.MULTILINE)
_NUMBERS = re.compile(r"\d{1,18}")
_SECTION, _METRIC, _UNIT, _VALUE = "Section Name", "Metric Name", "Metric Unit", "Metric Value"
_DESCRIPTION = (
    *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream"),
    *("Block Size", "Grid Size", "Device", "CC", _SECTION),
)

# The label that ends each section of a details page; all names it has had.
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


@dataclass
class _Table:
    """One header and what follows it; `by_id` finds the launch of a details row."""

    header: list[str]
    units: list[str] = field(default_factory=list)
    by_id: dict[tuple[str, ...], PrintedLaunch] = field(default_factory=dict)

    @property
    def is_details(self) -> bool:
        return _METRIC in self.header


def is_page(text: str) -> bool:
    """Whether the text holds the header of an ncu CSV page."""
    return _HEADER.search(text) is not None


def parse(text: str) -> list[PrintedLaunch]:
    """The launches of all pages in the text, in its order.

    Raises:
        WarplogError: a page is cut or damaged; the line does not name the file.
    """
    if not text.endswith("\n"):
        raise WarplogError("is cut: its last line has no end; print it anew")
    launches: list[PrintedLaunch] = []
    table = _Table([])
    try:
        for row in csv.reader(_lines(text), skipinitialspace=True):
            if row and row[0].lstrip("\ufeff") == "ID":
                table = _table(row)
            elif row:
                launches += _details(row, table) if table.is_details else _raw(row, table)
                check_count(launches)
    except csv.Error as error:
        raise WarplogError(f"is cut or damaged ({error}); print it anew") from None
    check_whole(launches, text)
    if launches and launches[-1].labels:
        _check_section(launches[-1].labels)
    return launches


def _check_section(labels: Sequence[tuple[str, str]]) -> None:
    """Refuses a details page whose last section lacks the label that ncu prints last in it."""
    section = labels[-1][0]
    held = {label for place, label in labels if place == section}
    if section in _LAST_LABELS and not held & _LAST_LABELS[section]:
        raise WarplogError(f"is cut: it stops inside the section {section}; print it anew")


def _lines(text: str) -> Iterator[str]:
    """The lines of the tables. A line inside quotes belongs to its row, whatever it looks like."""
    start = _HEADER.search(text)
    begin = start.start() if start else len(text)
    quoted = text[begin : begin + 2].lstrip("\ufeff").startswith('"')
    is_open = False
    for line in text[begin:].split("\n"):
        foreign = line.startswith("==") or (quoted and not line.startswith('"'))
        if not is_open and (foreign or not line.strip()):
            continue
        is_open ^= line.count('"') % 2 == 1
        yield line + "\n"
    if is_open:
        raise csv.Error("a quote is not closed")


def _table(row: list[str]) -> _Table:
    header = [row[0].lstrip("\ufeff"), *row[1:]]
    if len(set(header)) < len(header) or "Kernel Name" not in header:
        raise WarplogError("is damaged: its columns are not those of ncu; print it anew")
    if _METRIC in header and not {_SECTION, _UNIT, _VALUE} <= set(header):
        raise WarplogError("is cut or damaged: its header lacks columns; print it anew")
    return _Table(header)


def _details(row: list[str], table: _Table) -> list[PrintedLaunch]:
    """A value, or the text of a rule, which has no metric; the launch where it is a new one."""
    if not table.header.index(_VALUE) < len(row) <= len(table.header):
        raise _ragged(row, table)
    cells = dict(zip(table.header, row, strict=False))
    key = (cells["ID"], cells.get("Process ID", ""), cells.get("Host Name", ""))
    new = key not in table.by_id
    launch = table.by_id.setdefault(key, _launch(cells)) if new else table.by_id[key]
    if cells[_METRIC]:
        launch.add(cells[_SECTION], cells[_METRIC], cells[_UNIT], cells[_VALUE])
    return [launch] if new else []


def _raw(row: list[str], table: _Table) -> list[PrintedLaunch]:
    """A launch; the row under the header holds the units and is none."""
    if len(row) != len(table.header):
        raise _ragged(row, table)
    cells = dict(zip(table.header, row, strict=True))
    if not cells["ID"].strip() and not cells["Kernel Name"].strip():
        table.units = row
        return []
    launch = _launch(cells)
    units = table.units or [""] * len(row)
    for name, unit, value in zip(table.header, units, row, strict=True):
        if name not in _DESCRIPTION:
            launch.add_counter(name, unit, value)
    return [launch]


def _launch(cells: dict[str, str]) -> PrintedLaunch:
    major, _, minor = cells.get("CC", "").partition(".")
    known = major.isascii() and minor.isascii() and major.isdigit() and minor.isdigit()
    return PrintedLaunch(
        kernel=cells["Kernel Name"],
        compute_capability=(int(major[:4]), int(minor[:4])) if known else None,
        grid=_size(cells.get("Grid Size", "")),
        block=_size(cells.get("Block Size", "")),
    )


def _size(text: str) -> tuple[int, ...] | None:
    sizes = tuple(int(number) for number in _NUMBERS.findall(text))
    return sizes if len(sizes) == 3 else None


def _ragged(row: list[str], table: _Table) -> WarplogError:
    fields = f"{len(row)} of {len(table.header)} fields"
    return WarplogError(f"is cut or damaged: a row has {fields}; print it anew")
