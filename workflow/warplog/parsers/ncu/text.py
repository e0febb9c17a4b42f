"""Parses the tables that ncu prints to the terminal, one set under the heading of each launch.

A heading is `  name (grid)x(block), Context 1, Stream 7, Device 0, CC 9.0`; before 2022 it has a time instead of
the sizes and no compute capability, and on a page of `--print-summary` the number of invocations instead of context
and stream. A page may be indented as a whole, and a long heading may be wrapped. Truncation inside a table is
detected; for a text that ends between two tables see `printed.check_whole`.
"""

import re
from dataclasses import dataclass, field

from warplog.core.errors import WarplogError
from warplog.parsers.ncu.printed import PrintedLaunch, check_count, check_whole

_DEVICE = r", Device [0-9]+, CC ([0-9]{1,4})\.([0-9]{1,4})"
_LAUNCHED = rf", Context [0-9]+, Stream [0-9]+(?:{_DEVICE})?(?:, [\w .:]{{1,80}})?"
_TAIL = re.compile(rf"(?:{_LAUNCHED}|{_DEVICE}, Invocations ([0-9]{{1,9}}))[ \t\r]*$", re.MULTILINE)
_SIZES = re.compile(
    r"(?:^| )\(([0-9]{1,18}), ([0-9]{1,18}), ([0-9]{1,18})\)x\(([0-9]{1,18}), ([0-9]{1,18}), ([0-9]{1,18})\)$"
)
_NO_SIZES = re.compile(r"\)x\([^()]*\)$")
_TIME = re.compile(r", [0-9]{4}-\w{3}-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]$")
_RULER = re.compile(r"^    (-{3,}) (-{3,}) (-{3,})(?: (-{3,}) (-{3,}))?[ \t]*$")
_SECTION = "    Section: "
_INDENTED = re.compile(rf"^([ \t]{{0,200}}){_SECTION}", re.MULTILINE)
_TITLE = "Metric Name"
_MOST_WRAPPED = 50


@dataclass(frozen=True)
class _Columns:
    """The ends of label and unit, and the start and end of the value in a line of a table."""

    label: int
    unit: int
    start: int
    end: int


@dataclass
class _Reader:
    """The state of the parser.

    `columns` are those of the table, None outside of tables; `before` are the lines since the last empty line, table
    or section, which may be the beginning of a wrapped heading.
    """

    launches: list[PrintedLaunch] = field(default_factory=list)
    section: str = ""
    columns: _Columns | None = None
    under_title: bool = False
    before: list[str] = field(default_factory=list)

    def read(self, line: str) -> None:
        """Processes the next line, without its line end."""
        if ruler := _RULER.match(line):
            self._ruler(ruler)
        elif self.columns is not None:
            self._value(line, self.columns)
        elif line.startswith(_SECTION):
            if not self.launches:
                raise WarplogError("is truncated or damaged: it begins with a section; print it again")
            self.section = line.removeprefix(_SECTION).strip()
        elif _TAIL.search(line, _before_tail(line)):
            self._heading(line)
        elif line.strip() and len(self.before) < _MOST_WRAPPED:
            self.before.append(line)
            return
        self.before = []

    def _heading(self, line: str) -> None:
        launch = _launch(line)
        if not (line.startswith("  ") and line[2:3].strip() and _is_whole(launch.kernel)):
            launch = _launch(_unwrapped([*self.before, line]))
        if not _is_whole(launch.kernel):
            raise WarplogError(
                "has a heading without the name of its kernel; print it again without wrapping lines"
            )
        self.launches.append(launch)
        check_count(self.launches)
        self.section = ""

    def _ruler(self, ruler: re.Match[str]) -> None:
        """Opens a table, separates its titles from its values, or closes it."""
        if self.under_title:
            self.under_title = False
        elif self.columns is None and self.launches:
            has_average = ruler[5] is not None
            start, end = (ruler.end(4), ruler.end(5)) if has_average else (ruler.end(2), ruler.end(3))
            self.columns = _Columns(ruler.end(1), ruler.end(2), start, end)
        else:
            self.columns = None

    def _value(self, line: str, columns: _Columns) -> None:
        if line.startswith("==") or not line.strip():
            return
        label, unit = line[4 : columns.label].strip(), line[columns.label : columns.unit].strip()
        value = line[columns.start :].strip()
        if not line.startswith("    ") or len(line.rstrip()) > columns.end or not label:
            raise WarplogError("is truncated or damaged: a table contains other output; print it again")
        if label == _TITLE:
            self.under_title = True
        elif not value:
            raise WarplogError(f"is truncated or damaged: {label[:60]} has no value; print it again")
        elif (self.section, label) in self.launches[-1].labels:
            raise WarplogError(f"is damaged: {label[:60]} occurs twice in a launch; print it again")
        else:
            self.launches[-1].add(self.section, label, unit, value)


def is_page(text: str) -> bool:
    """Returns whether the text contains the heading of a launch."""
    return _TAIL.search(text) is not None


def parse(text: str) -> list[PrintedLaunch]:
    """Returns the launches in the text, in order of appearance.

    Raises:
        WarplogError: if the text is truncated or damaged; the message does not name the file.
    """
    lines = _dedented(text)
    if lines[-1].strip() and not _RULER.match(lines[-1]):
        raise WarplogError("is truncated: its last line has no line end; print it again")
    reader = _Reader()
    for line in lines:
        reader.read(line)
    if reader.columns is not None:
        raise WarplogError("is truncated: it ends inside a table; print it again")
    if any(not launch.labels for launch in reader.launches):
        raise WarplogError("is truncated or damaged: a launch has no table; print it again")
    check_whole(reader.launches, text)
    return reader.launches


def _dedented(text: str) -> list[str]:
    """Returns the lines without the spaces by which the page is indented, which its first section shows."""
    found = _INDENTED.search(text)
    indent = found[1] if found else ""
    return [line.rstrip("\r").removeprefix(indent) for line in text.split("\n")]


def _unwrapped(lines: list[str]) -> str:
    """Returns the heading whose last line is the last of `lines`; it starts at the last line indented by two.

    A continuation that is not indented was wrapped by the terminal, in the middle of a word.
    """
    starts = [i for i, line in enumerate(lines[:-1]) if line.startswith("  ") and line[2:3].strip()]
    heading, *rest = lines[starts[-1] if starts else -1 :]
    for line in rest:
        heading += f" {line.strip()}" if line[:1].isspace() else line
    return heading


def _is_whole(name: str) -> bool:
    """Returns whether this can be the whole name of a kernel: it is not empty and closes what it opens.

    It does not end with the sizes of a launch, which `_launch` takes off if they are whole.
    """
    return bool(name) and name.count("(") == name.count(")") and not _NO_SIZES.search(name)


def _launch(line: str) -> PrintedLaunch:
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
