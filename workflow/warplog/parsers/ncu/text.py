"""Parses the tables that ncu prints to the terminal, one set under the heading of each launch.

A heading is `  name (grid)x(block), Context 1, Stream 7, Device 0, CC 9.0`; before 2022 it has a time instead of
the sizes and no compute capability. Truncation inside a table is detected; for a text that ends between two tables
see `printed.check_whole`.
"""

import re
from dataclasses import dataclass, field

from warplog.core.errors import WarplogError
from warplog.parsers.ncu.printed import PrintedLaunch, check_count, check_whole

_HEADING = re.compile(r"^  \S.*, Context \d+, Stream \d+.*$", re.MULTILINE)
_TAIL = re.compile(r", Context \d+, Stream \d+(?:, Device \d+, CC (\d{1,4})\.(\d{1,4}))?$")
_SIZES = re.compile(r" \((\d{1,18}), (\d{1,18}), (\d{1,18})\)x\((\d{1,18}), (\d{1,18}), (\d{1,18})\)$")
_TIME = re.compile(r", \d{4}-\w{3}-\d\d \d\d:\d\d:\d\d$")
_RULER = re.compile(r"^    (-{3,}) (-{3,}) (-{3,})$")
_TITLE = "Metric Name"


@dataclass
class _Reader:
    """The state of the parser; `ends` are the ends of the columns while inside a table, None outside."""

    launches: list[PrintedLaunch] = field(default_factory=list)
    section: str = ""
    ends: tuple[int, int, int] | None = None
    under_title: bool = False

    def read(self, line: str) -> None:
        """Processes the next line, without its line end."""
        if ruler := _RULER.match(line):
            self._ruler((ruler.end(1), ruler.end(2), ruler.end(3)))
        elif self.ends is not None:
            self._value(line)
        elif line.startswith("    Section: "):
            self.section = line.removeprefix("    Section: ").strip()
        elif _HEADING.match(line):
            self.launches.append(_launch(line))
            check_count(self.launches)
            self.section = ""

    def _ruler(self, ends: tuple[int, int, int]) -> None:
        """Opens a table, separates its titles from its values, or closes it."""
        if self.under_title:
            self.under_title = False
        elif self.ends is None and self.launches:
            self.ends = ends
        else:
            self.ends = None

    def _value(self, line: str) -> None:
        if line.startswith("==") or not line.strip() or self.ends is None:
            return
        first, second, third = self.ends
        label, unit, value = line[4:first].strip(), line[first:second].strip(), line[second:].strip()
        if not line.startswith("    ") or len(line.rstrip()) > third or not label:
            raise WarplogError("is truncated or damaged: a table contains other output; print it again")
        if label == _TITLE:
            self.under_title = True
        elif not value:
            raise WarplogError(f"is truncated or damaged: {label[:60]} has no value; print it again")
        else:
            self.launches[-1].add(self.section, label, unit, value)


def is_page(text: str) -> bool:
    """Returns whether the text contains the heading of a launch."""
    return _HEADING.search(text) is not None


def parse(text: str) -> list[PrintedLaunch]:
    """Returns the launches in the text, in order of appearance.

    Raises:
        WarplogError: if the text is truncated or damaged; the message does not name the file.
    """
    if not text.endswith("\n"):
        raise WarplogError("is truncated: its last line has no line end; print it again")
    reader = _Reader()
    for line in text.split("\n"):
        reader.read(line.rstrip("\r"))
    if reader.ends is not None:
        raise WarplogError("is truncated: it ends inside a table; print it again")
    if any(not launch.labels for launch in reader.launches):
        raise WarplogError("is truncated or damaged: a launch has no table; print it again")
    check_whole(reader.launches, text)
    return reader.launches


def _launch(line: str) -> PrintedLaunch:
    name = line.rstrip()[2:]
    capability, grid, block = None, None, None
    if tail := _TAIL.search(name, max(0, name.rfind(", Context "))):
        name = name[: tail.start()]
        capability = (int(tail[1]), int(tail[2])) if tail[1] else None
    name = _TIME.sub("", name)
    if sizes := _SIZES.search(name, max(0, name.rfind(" (", 0, max(0, name.rfind(")x("))))):
        name = name[: sizes.start()]
        numbers = tuple(int(size) for size in sizes.groups())
        grid, block = numbers[:3], numbers[3:]
    return PrintedLaunch(name, capability, grid, block)
