"""Reads the pages that ncu prints, as CSV or as text, into launches.

As CSV, a raw page has a row per launch and a column per counter, a details page a row per value. As text, the values of
a details page stand in tables under a heading such as `name (grid)x(block), Context 1, Stream 7, Device 0, CC 9.0`;
before 2022 it has a time instead of the sizes and no compute capability. A text may be indented as a whole, and a long
heading may be wrapped. A page of `--print-summary` is a details page with minimum, maximum and average over the
launches of a kernel; the averages are read. The application's output and ncu's `==PROF==` lines may appear before,
between and after the rows of CSV, and outside the tables of text.

Truncation inside a row or a table is detected, and so is a page of fewer launches than ncu announced, one whose last
launch has only the first labels of the one before, and a CSV page that stops inside a section. A page that ends after a
complete launch without announcements, or after a complete section of its only launch, is not.
"""

import csv
import re
from collections.abc import Container, Iterator, Mapping, Sequence

from warplog.core.errors import WarplogError
from warplog.parsers.ncu.printed import PrintedLaunch

MAX_LAUNCHES = 5000
# Application replay announces a launch once per pass, in a different form.
_ANNOUNCED = re.compile(r'^==PROF== Profiling ".*" - \d+: 0%', re.MULTILINE)
_FAILED = "==ERROR=="
_NUMBERS = re.compile(r"[0-9]{1,18}")

_HEADER = re.compile(
    r'^\ufeff?(?:"ID", ?"Process ID"|ID, ?Process ID|"?Process ID"?),.*Kernel Name', re.MULTILINE
)
_SECTION, _METRIC, _UNIT, _VALUE = "Section Name", "Metric Name", "Metric Unit", "Metric Value"
_AVERAGE, _INVOCATIONS = "Average", "Invocations"
_KEY = ("ID", "Process ID")
_SUMMARY_KEY = ("Process ID", "Host Name", "Kernel Name", "Block Size", "Grid Size", "Device", _INVOCATIONS)
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

_DEVICE = r", Device [0-9]+, CC ([0-9]{1,4})\.([0-9]{1,4})"
_LAUNCHED = rf", Context [0-9]+, Stream [0-9]+(?:{_DEVICE})?(?:, [\w .:]{{1,80}})?"
_TAIL = re.compile(rf"(?:{_LAUNCHED}|{_DEVICE}, Invocations ([0-9]{{1,9}}))[ \t\r]*$", re.MULTILINE)
_SIZES = re.compile(
    r"(?:^| )\(([0-9]{1,18}), ([0-9]{1,18}), ([0-9]{1,18})\)x\(([0-9]{1,18}), ([0-9]{1,18}), ([0-9]{1,18})\)$"
)
_NO_SIZES = re.compile(r"\)x\([^()]*\)$")
_TIME = re.compile(r", [0-9]{4}-\w{3}-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]$")
_RULER = re.compile(r"^    (-{3,}) (-{3,}) (-{3,})(?: (-{3,}) (-{3,}))?[ \t]*$")
_TITLE = "    Section: "
_INDENTED = re.compile(rf"^([ \t]{{0,200}}){_TITLE}", re.MULTILINE)
_MOST_WRAPPED = 50


def is_page(text: str) -> bool:
    """Returns whether the text contains the header of a CSV page or the heading of a launch."""
    return bool(_HEADER.search(text) or _TAIL.search(text))


def parse(text: str) -> list[PrintedLaunch]:
    """Returns the launches of all pages in the text, in order of appearance.

    Raises:
        WarplogError: if a page is truncated or damaged, or there are more than MAX_LAUNCHES; the message does not name
            the file.
    """
    is_csv = _HEADER.search(text) is not None
    launches = _of_csv(text) if is_csv else _of_text(text)
    announced = 0 if _FAILED in text else len(_ANNOUNCED.findall(text))
    found = sum(launch.invocations or 1 for launch in launches)
    if announced > found:
        raise WarplogError(f"is truncated: {found} of {announced} profiled launches; print it again")
    before, last = ([], [], *(launch.labels for launch in launches))[-2:]
    if len(last) < len(before) and last == before[: len(last)]:
        raise WarplogError(
            "is truncated: its last launch has fewer labels than the one before; print it again"
        )
    section = last[-1][0] if last and is_csv else ""
    held = {label for place, label in last if place == section}
    if section in _LAST_LABELS and not held & _LAST_LABELS[section]:
        raise WarplogError(f"is truncated: it stops inside the section {section}; print it again")
    return launches


def _add(launches: list[PrintedLaunch], launch: PrintedLaunch) -> None:
    if len(launches) == MAX_LAUNCHES:
        raise WarplogError(
            f"contains more than {MAX_LAUNCHES} launches; print fewer, or extract the .ncu-rep"
        )
    launches.append(launch)


def _of_csv(text: str) -> list[PrintedLaunch]:
    launches: list[PrintedLaunch] = []
    header, units, row = list[str](), list[str](), list[str]()
    found: dict[tuple[str, ...], PrintedLaunch] = {}  # the launches below this header
    try:
        for row in filter(None, csv.reader(_rows(text), skipinitialspace=True)):
            if row[0].lstrip("\ufeff") in {"ID", "Process ID"}:
                header, found = _header(row), {}
                units = [""] * len(header)
                continue
            if not _least(header) <= len(row) <= len(header):
                fields = f"{len(row)} of {len(header)} fields"
                raise WarplogError(f"is truncated or damaged: a row has {fields}; print it again")
            cells = dict(zip(header, row, strict=False))
            if _METRIC not in cells and not cells["ID"].strip() and not cells["Kernel Name"].strip():
                units = row  # the row under the header of a raw page
                continue
            key = tuple(cells.get(name, "") for name in (_KEY if "ID" in cells else _SUMMARY_KEY))
            if key not in found:
                found[key] = _described(cells)
                _add(launches, found[key])
            elif "ID" in cells and (_METRIC not in cells or found[key] is not launches[-1]):
                raise WarplogError(f"is damaged: the launch {cells['ID'][:20]} occurs twice; print it again")
            _fill(found[key], cells, units)
    except csv.Error as error:
        raise WarplogError(f"is truncated or damaged ({error}); print it again") from None
    if not _ends_whole(text, row, header, launches):
        raise WarplogError("is truncated: its last line has no line end; print it again")
    return launches


def _rows(text: str) -> Iterator[str]:
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


def _header(row: Sequence[str]) -> list[str]:
    header = [row[0].lstrip("\ufeff"), *row[1:]]
    needed = {"Kernel Name", *((_SECTION, _UNIT, _value(header)) if _METRIC in header else ("ID",))}
    if len(set(header)) < len(header) or not needed <= set(header):
        raise WarplogError("is truncated or damaged: its columns are not those of ncu; print it again")
    return header


def _value(header: Container[str]) -> str:
    """Returns the column of the values of a details page."""
    return _AVERAGE if _INVOCATIONS in header else _VALUE


def _least(header: Sequence[str]) -> int:
    """Returns how many cells a row must have: a row with a value may lack the columns of rules."""
    return header.index(_value(header)) + 1 if _METRIC in header else len(header)


def _ends_whole(
    text: str, row: Sequence[str], header: Sequence[str], launches: Sequence[PrintedLaunch]
) -> bool:
    """Returns whether the last row is whole: the text has a last line end, or the page could end without one.

    The quotation mark after the last value must then be there. A details page must end in a section that ncu prints
    last, or its last launch must have the labels of the one before.
    """
    if text.endswith("\n"):
        return True
    is_rule = _METRIC in header and not row[header.index(_METRIC)]
    filled = len(header) if is_rule else _least(header)
    closed = text.endswith(('"', '",')) and len(row) - text.endswith(",") >= filled
    before, last = ([], [], *(launch.labels for launch in launches))[-2:]
    return closed and (last == before or last[-1][0] in _LAST_SECTIONS)


def _fill(launch: PrintedLaunch, cells: Mapping[str, str], units: Sequence[str]) -> None:
    if _METRIC not in cells:
        for (counter, value), unit in zip(cells.items(), units, strict=True):
            launch.add_counter(counter, unit, value)
    elif cells[_METRIC]:  # the row of a rule's text has no metric
        launch.add(cells[_SECTION], cells[_METRIC], cells[_UNIT], cells[_value(cells)])


def _described(cells: Mapping[str, str]) -> PrintedLaunch:
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


def _of_text(text: str) -> list[PrintedLaunch]:
    found = _INDENTED.search(text)
    indent = found[1] if found else ""
    lines = [line.rstrip("\r").removeprefix(indent) for line in text.split("\n")]
    if lines[-1].strip() and not _RULER.match(lines[-1]):
        raise WarplogError("is truncated: its last line has no line end; print it again")
    launches: list[PrintedLaunch] = []
    section, before = (
        "",
        list[str](),
    )  # since the last empty line, table or section: may begin a wrapped heading
    left = iter(lines)
    for line in left:
        if ruler := _RULER.match(line):
            if launches:
                _read_table(left, ruler, section, launches[-1])
        elif line.startswith(_TITLE):
            if not launches:
                raise WarplogError("is truncated or damaged: it begins with a section; print it again")
            section = line.removeprefix(_TITLE).strip()
        elif _TAIL.search(line, _before_tail(line)):
            _add(launches, _heading(line, before))
            section = ""
        elif line.strip() and len(before) < _MOST_WRAPPED:
            before.append(line)
            continue
        before = []
    if not all(launch.labels for launch in launches):
        raise WarplogError("is truncated or damaged: a launch has no table; print it again")
    return launches


def _read_table(lines: Iterator[str], ruler: re.Match[str], section: str, launch: PrintedLaunch) -> None:
    """Adds the values of the table below `ruler`, up to the ruler that ends it, to the launch."""
    start, end = (ruler.end(4), ruler.end(5)) if ruler[5] else (ruler.end(2), ruler.end(3))
    is_title = False
    for line in lines:
        if _RULER.match(line):
            if not is_title:
                return
            is_title = False
        elif not line.startswith("==") and line.strip():
            label, unit = line[4 : ruler.end(1)].strip(), line[ruler.end(1) : ruler.end(2)].strip()
            value = line[start:].strip()
            if not line.startswith("    ") or len(line.rstrip()) > end or not label:
                raise WarplogError("is truncated or damaged: a table contains other output; print it again")
            if label == _METRIC:
                is_title = True
            elif not value:
                raise WarplogError(f"is truncated or damaged: {label[:60]} has no value; print it again")
            elif (section, label) in launch.labels:
                raise WarplogError(f"is damaged: {label[:60]} occurs twice in a launch; print it again")
            else:
                launch.add(section, label, unit, value)
    raise WarplogError("is truncated: it ends inside a table; print it again")


def _heading(line: str, before: Sequence[str]) -> PrintedLaunch:
    """Returns the launch of a heading that ends with `line`, and begins in one of the lines `before` if it is wrapped.

    A wrapped heading starts at the last line that is indented by two. A continuation that is not indented was wrapped
    by the terminal, in the middle of a word.
    """
    launch = _headed(line)
    if not (line.startswith("  ") and line[2:3].strip() and _is_whole(launch.kernel)):
        starts = [i for i, each in enumerate(before) if each.startswith("  ") and each[2:3].strip()]
        parts = [*before[starts[-1] :], line] if starts else [line]
        launch = _headed("".join(f" {part.strip()}" if part[:1].isspace() else part for part in parts))
    if not _is_whole(launch.kernel):
        raise WarplogError(
            "has a heading without the name of its kernel; print it again without wrapping lines"
        )
    return launch


def _is_whole(name: str) -> bool:
    """Returns whether this can be the whole name of a kernel: it is not empty and closes what it opens.

    It does not end with the sizes of a launch, which `_headed` takes off if they are whole.
    """
    return bool(name) and name.count("(") == name.count(")") and not _NO_SIZES.search(name)


def _headed(line: str) -> PrintedLaunch:
    name = line.strip()
    capability, grid, block, invocations = None, None, None, None
    if tail := _TAIL.search(name, _before_tail(name)):
        name = name[: tail.start()]
        major, minor = tail[1] or tail[3], tail[2] or tail[4]
        capability = (int(major), int(minor)) if major else None
        invocations = int(tail[5]) if tail[5] else None
    name = _TIME.sub("", name)
    if sizes := _SIZES.search(name, max(0, name.rfind("(", 0, max(0, name.rfind(")x("))) - 1)):
        name = name[: sizes.start()]
        numbers = tuple(int(size) for size in sizes.groups())
        grid, block = numbers[:3], numbers[3:]
    return PrintedLaunch(name, capability, grid, block, invocations)


def _before_tail(line: str) -> int:
    """Returns where the end of a heading can start, so that the search does not scan a long name."""
    context = line.rfind(", Context ")
    return max(0, context if context >= 0 else line.rfind(", Device "))
