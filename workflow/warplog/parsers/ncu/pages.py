"""Reads the pages that ncu prints, as CSV or as text, into launches.

As CSV, a raw page has a row per launch and a column per counter, a details page a row per value. As text, the values of
a details page stand in tables under a heading such as `name (grid)x(block), Context 1, Stream 7, Device 0, CC 9.0`;
before 2022 it has a time instead of the sizes and no compute capability. A page of `--print-summary` is a details page
with minimum, maximum and average over the launches of a kernel. Other output may stand between the rows of CSV and
outside the tables of text; a text may be indented, and a heading wrapped.

Truncation inside a row or a table is detected, and so is a page of fewer launches than ncu announced, one whose last
launch has only the first labels of the one before, and a CSV page that stops inside a section. A page that ends after a
complete launch without announcements, or after a complete section of its only launch, is not.
"""

import csv
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from warplog.core.errors import WarplogError
from warplog.parsers import units
from warplog.parsers.ncu.labels import LAST_SECTIONS, SECTIONS, plain
from warplog.parsers.ncu.printed import KNOWN, PrintedLaunch
from warplog.parsers.printed_tables import cells, columns, damaged

MAX_LAUNCHES = 5000
# Application replay announces a launch once per pass, in a different form.
_ANNOUNCED = re.compile(r'^==PROF== Profiling ".*" - \d+: 0%', re.MULTILINE)
_HEADER = re.compile(r'^(?:"?ID"?, ?)?"?Process ID"?,.*Kernel Name', re.MULTILINE)
_KEY = ("ID", "Process ID")
_SUMMARY_KEY = ("Process ID", "Host Name", "Kernel Name", "Block Size", "Grid Size", "Device", "Invocations")
_CC = r", Device [0-9]+, CC ([0-9]{1,4}\.[0-9]{1,4})"
_LAUNCHED = rf", Context [0-9]+, Stream [0-9]+(?:{_CC})?(?:, [\w .:]{{1,80}})?"
_END = rf"(?:{_LAUNCHED}|{_CC}, Invocations ([0-9]{{1,9}}))[ \t]*$"
_HEADING_END = re.compile(_END, re.MULTILINE)
_SIZES = r"\(((?:[0-9]{1,18}, ){2}[0-9]{1,18})\)"
_TIME = r", [0-9]{4}-\w{3}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}"
_HEADING = re.compile(rf"(.*?)(?:(?<!\S){_SIZES}x{_SIZES})?(?:{_TIME})?{_END}")
_DAMAGED_SIZES = re.compile(r"\)x\([^()]*\)$")
_TITLE = "    Section: "
_INDENTED = re.compile(rf"^([ \t]{{0,200}}){_TITLE}", re.MULTILINE)
_START = re.compile(r"  \S")
_MOST_WRAPPED = 50


def is_page(text: str) -> bool:
    """Returns whether the text contains the header of a CSV page or the heading of a launch."""
    return bool(_HEADER.search(text) or _HEADING_END.search(text))


def parse(text: str) -> list[PrintedLaunch]:
    """Returns the launches of all pages in the text, in order of appearance.

    Raises:
        WarplogError: if a page is truncated or damaged, or there are more than MAX_LAUNCHES; the message does not name
            the file.
    """
    header = _HEADER.search(text)
    launches = _of_csv(text[header.start() :]) if header else _of_text(text)
    announced = 0 if "==ERROR==" in text else len(_ANNOUNCED.findall(text))
    profiled = sum(launch.invocations or 1 for launch in launches)
    if announced > profiled:
        raise damaged(f"{profiled} of {announced} profiled launches")
    before, last = ([], [], *(list(launch.labels) for launch in launches[-2:]))[-2:]
    if len(last) < len(before) and last == before[: len(last)]:
        raise damaged("its last launch has fewer labels than the one before")
    section = plain(last[-1][0]) if last and header else ""
    labels = {plain(label) for title, label in last if plain(title) == section}
    if section in SECTIONS and next(reversed(SECTIONS[section])) not in labels:
        raise damaged(f"it stops inside the section {last[-1][0]}")
    if section and not text.endswith("\n") and last != before and section not in LAST_SECTIONS:
        raise damaged("its last line has no line end")
    return launches


def _add(launches: list[PrintedLaunch], launch: PrintedLaunch) -> None:
    if len(launches) == MAX_LAUNCHES:
        raise WarplogError(f"contains more than {MAX_LAUNCHES} launches; print fewer, or extract the report")
    launches.append(launch)


class _CsvPage:
    """A page whose rows add launches, or values to them."""

    def __init__(self, header: list[str]) -> None:
        self.header, self.units = header, [""] * len(header)
        self.launch_of: dict[tuple[str, ...], PrintedLaunch] = {}
        self.is_details = "Metric Name" in header
        self.value = "Average" if "Invocations" in header else "Metric Value"
        needed = {"Section Name", "Metric Unit", self.value} if self.is_details else {"ID"}
        if len(set(header)) < len(header) or not needed | {"Kernel Name"} <= set(header):
            raise damaged("its columns are not those of ncu")
        # A row with a value may lack the columns of rules.
        self.least = header.index(self.value) + 1 if self.is_details else len(header)

    def add(self, row: list[str], launches: list[PrintedLaunch]) -> None:
        if not self.least <= len(row) <= len(self.header):
            raise damaged(f"a row has {len(row)} of {len(self.header)} fields")
        cell = defaultdict(str, zip(self.header, row, strict=False))
        if not self.is_details and not (cell["ID"] + cell["Kernel Name"]).strip():
            self.units = row  # the row under the header of a raw page
            return
        key = tuple(cell[name] for name in (_KEY if "ID" in self.header else _SUMMARY_KEY))
        launch = self.launch_of.get(key)
        if launch is None:
            shape, count = (
                (cell["Grid Size"], cell["Block Size"]),
                int(units.number(cell["Invocations"]) or 0),
            )
            launch = self.launch_of[key] = PrintedLaunch(cell["Kernel Name"], cell["CC"], *shape, count)
            _add(launches, launch)
        elif "ID" in self.header and not (self.is_details and launch is launches[-1]):
            raise damaged(f"the launch {cell['ID'][:20]} occurs twice")
        if not self.is_details:
            for name, unit, text in zip(self.header, self.units, row, strict=True):
                if name in KNOWN:
                    launch.add("", name, unit, text)
        elif cell["Metric Name"]:  # the row of a rule's text has none
            launch.add(cell["Section Name"], cell["Metric Name"], cell["Metric Unit"], cell[self.value])


def _of_csv(text: str) -> list[PrintedLaunch]:
    launches: list[PrintedLaunch] = []
    page, row = None, list[str]()
    try:
        for row in filter(None, csv.reader(_lines(text), skipinitialspace=True)):
            if row[0] in _KEY:
                page = _CsvPage(row)
            elif page:
                page.add(row, launches)
    except csv.Error as error:
        raise damaged(str(error)) from None
    cells_closed = len(row) - text.endswith(",") if text.endswith(('"', '",')) else 0
    if not text.endswith("\n") and (not page or cells_closed not in {page.least, len(page.header)}):
        raise damaged("its last line has no line end")
    return launches


def _lines(text: str) -> Iterator[str]:
    """Yields the lines of the tables. A line inside a quoted cell always belongs to its row."""
    start, is_open = '"' if text.startswith('"') else "", False
    for line in text.split("\n"):
        if is_open or (line.strip() and line.startswith(start) and not line.startswith("==")):
            is_open ^= line.count('"') % 2 == 1
            yield line + "\n"
    if is_open:
        raise csv.Error("a quotation mark is not closed")


def _of_text(text: str) -> list[PrintedLaunch]:
    indent = indented[1] if (indented := _INDENTED.search(text)) else ""
    lines = [line.removeprefix(indent) for line in text.split("\n")]
    if lines[-1].strip() and len(columns(lines[-1])) < 3:
        raise damaged("its last line has no line end")
    launches: list[PrintedLaunch] = []
    section = ""
    before: list[str] = []  # since the last empty line, table or section: may begin a wrapped heading
    left = iter(lines)
    for line in left:
        if launches and line.startswith("    -") and len(columns(line)) in {3, 5}:
            _read_table(left, line.rstrip(), section, launches[-1])
        elif line.startswith(_TITLE):
            section = line.removeprefix(_TITLE).strip()
            if not launches:
                raise damaged("it begins with a section")
        elif _HEADING_END.search(line):
            _add(launches, _headed(line, before))
            section = ""
        elif line.strip() and len(before) < _MOST_WRAPPED:
            before.append(line)
            continue
        before = []
    if not all(launch.labels for launch in launches):
        raise damaged("a launch has no table")
    return launches


def _read_table(lines: Iterator[str], ruler: str, section: str, launch: PrintedLaunch) -> None:
    """Adds the values of the table below `ruler`, up to the same ruler, to the launch."""
    spans, is_title = columns(ruler), False
    for line in lines:
        if line.rstrip() == ruler:
            if not is_title:
                return
            is_title = False
        elif line.strip() and not line.startswith("=="):
            label, unit, *_, value = cells(line, spans)
            if not line.startswith("    ") or len(line.rstrip()) > len(ruler) or not label:
                raise damaged("a table contains other output")
            if label == "Metric Name":
                is_title = True
            elif not value or (section, label) in launch.labels:
                raise damaged(f"{label[:60]} {'occurs twice in a launch' if value else 'has no value'}")
            else:
                launch.add(section, label, unit, value)
    raise damaged("it ends inside a table")


def _headed(line: str, before: Sequence[str]) -> PrintedLaunch:
    """Returns the launch of a heading that ends with `line`, and begins in one of the lines `before` if it is wrapped.

    A wrapped heading starts at the last line that is indented by two. A continuation that is not indented was wrapped
    by the terminal, in the middle of a word. The name of a kernel closes what it opens.
    """
    starts = [number for number, part in enumerate(before) if _START.match(part)]
    parts = [*before[starts[-1] :], line] if starts else [line]
    wrapped = "".join(f" {part.strip()}" if part[:1].isspace() else part for part in parts)
    for heading in filter(
        None, map(_HEADING.fullmatch, (line, wrapped) if _START.match(line) else (wrapped,))
    ):
        name, grid, block, cc, summary_cc, invocations = heading.groups("")
        name = name.strip()
        if name and name.count("(") == name.count(")") and not _DAMAGED_SIZES.search(name):
            return PrintedLaunch(name, cc or summary_cc, grid, block, int(invocations or 0))
    raise damaged("it has a heading without the name of its kernel (was a line wrapped?)")
