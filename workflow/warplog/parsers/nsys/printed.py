"""Tables in the output of `nsys stats`, as CSV or text with columns over dashes.

A text may contain several tables. Truncation inside a row is detected, also if the last line has no line end: such a
line is accepted as a row of a CSV table if a quotation mark or bracket closes its last cell.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from warplog.core.errors import WarplogError
from warplog.parsers import units

_RULER = re.compile(r"[ \t]*-{2,}(?:[ \t]+-{2,})+\s*")
_CSV_START = re.compile(r'\ufeff?"?[^",]{1,40}"?,')
_STARTS_WITH_NUMBER = re.compile(r'\s*"?\d')
_UNIT = re.compile(r"\((\w+)\)")
_CLOSED = ('"', ")", "]")
_MOST_ROWS = 2_000_000
_MOST_COLUMNS = 32
_LONGEST_RULER = 10_000


@dataclass(frozen=True)
class Table:
    """A table whose header is at line `number` of `lines`; `spans` are the extents of the columns of a text table."""

    lines: Sequence[str]
    number: int
    header: Sequence[str]
    spans: Sequence[tuple[int, int]]

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns in lower case, without units."""
        return [name.partition(" (")[0].partition("(")[0].lower() for name in self.header]

    def unit(self, column: str) -> str:
        """Returns the unit in the header of a column; "ns" if it has none."""
        found = _UNIT.search(self.header[self.names.index(column)])
        return found[1] if found else "ns"

    def rows(self) -> Iterator[dict[str, str]]:
        """Yields the rows, up to the first line that does not start with a number, as printed, by column name.

        Raises:
            WarplogError: if a row is truncated or damaged.
        """
        start = self.number + (2 if self.spans else 1)
        for number in range(start, len(self.lines)):
            line = self.lines[number].rstrip("\r")
            if not _STARTS_WITH_NUMBER.match(line):
                break
            if number - start >= _MOST_ROWS:
                raise WarplogError(f"contains a table with more than {_MOST_ROWS} rows")
            if number == len(self.lines) - 1 and (self.spans or not line.rstrip().endswith(_CLOSED)):
                raise WarplogError("is truncated: its last line has no line end; print it again")
            cells = _cells(line, self.spans)
            if len(cells) != len(self.names) or not cells[-1]:
                raise WarplogError(
                    f"is truncated or damaged: a row has {len(cells)} of {len(self.names)} fields"
                )
            yield dict(zip(self.names, cells, strict=True))


def tables(text: str, first: re.Pattern[str]) -> Iterator[Table]:
    """Yields the tables whose header starts with a match of `first`.

    The last line of `text` is a row only if it is not empty.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not first.match(line.lstrip("\ufeff")):
            continue
        if _CSV_START.match(line):
            yield Table(lines, number, _cells(line.strip("\ufeff\r"), ()), ())
        elif spans := _spans(lines, number):
            yield Table(lines, number, [line[start:end].strip() for start, end in spans], spans)


def value(row: dict[str, str], column: str) -> float:
    """Returns the number in a column.

    Raises:
        WarplogError: if it is not a number from 0 to 10^18.
    """
    found = units.number(row.get(column, ""))
    if found is None or not 0 <= found < 1e18:
        raise WarplogError(
            f"is truncated or damaged: {column} is {row.get(column, '')[:40]!r}; print it again"
        )
    return found


def scale_us(unit: str) -> float:
    """Returns the microseconds in a unit of time.

    Raises:
        WarplogError: if the unit is unknown.
    """
    scale = units.to_base(unit)
    if scale is None:
        raise WarplogError(f"has times in the unknown unit {unit[:20]!r}")
    return scale * 1e-3


def _spans(lines: Sequence[str], number: int) -> list[tuple[int, int]]:
    """Returns the extents of a text table's columns, from the dashes under its header; the last is open-ended."""
    ruler = lines[number + 1] if number + 1 < len(lines) else ""
    if len(ruler) > _LONGEST_RULER or not _RULER.fullmatch(ruler):
        return []
    ends = [(run.start(), run.end()) for run in re.finditer(r"-+", ruler)]
    return [*ends[:-1], (ends[-1][0], 1 << 30)] if len(ends) <= _MOST_COLUMNS else []


def _cells(line: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    if spans:
        return [line[start:end].strip() for start, end in spans]
    try:
        return [cell.strip() for cell in next(csv.reader([line], strict=True))]
    except csv.Error as error:
        raise WarplogError(f"is truncated or damaged ({error}); print it again") from None
