"""Tables that ncu and nsys print: as CSV, or as text whose columns are marked by a line of dashes."""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from warplog.core.errors import WarplogError
from warplog.parsers import units

_DASHES = re.compile(r"[ \t]*-{2,}(?:[ \t]+-{2,}){1,31}[ \t]*")
_STARTS_WITH_NUMBER = re.compile(r'\s*"?\d')


class Table(NamedTuple):
    """The units of the columns by their names in lower case ("" if the header has none), and the rows as printed."""

    units: dict[str, str]
    rows: Iterator[dict[str, str]]

    def us(self, row: dict[str, str], column: str) -> float:
        """Returns the microseconds in a column of times, which are in ns if the header has no unit."""
        scale = units.to_base(self.units[column] or "ns")
        if scale is None:
            raise WarplogError(f"has times in the unknown unit {self.units[column][:20]!r}")
        return number(row, column) * (scale * 1e-3)


def damaged(why: str) -> WarplogError:
    """Returns the error of a text that is not as it was printed; it does not name the file."""
    return WarplogError(f"is truncated or damaged: {why}; print it again")


def tables(text: str, first: re.Pattern[str]) -> Iterator[Table]:
    """Yields the tables of nsys whose header starts with a match of `first`, each up to a line without a number.

    Reading the rows raises WarplogError if one is cut, also if the last line has no line end: such a line is accepted
    as a row of CSV if a quotation mark or bracket closes its last cell.
    """
    lines = text.split("\n")
    for place, (line, below) in enumerate(pairwise([*lines, ""]), 1):
        if (start := first.match(line)) and ((spans := columns(below)) or "," in start[0]):
            header = [name.partition("(") for name in cells(line, spans)]
            in_units = {name.strip().lower(): unit.partition(")")[0] for name, _, unit in header}
            yield Table(in_units, _rows(lines, place + bool(spans), list(in_units), spans))


def _rows(
    lines: Sequence[str], start: int, names: Sequence[str], spans: Sequence[slice]
) -> Iterator[dict[str, str]]:
    for place in range(start, len(lines)):
        line = lines[place]
        if not _STARTS_WITH_NUMBER.match(line):
            return
        if place == len(lines) - 1 and (spans or not line.rstrip().endswith(('"', ")", "]"))):
            raise damaged("its last line has no line end")
        row = cells(line, spans)
        if len(row) != len(names) or not row[-1]:
            raise damaged(f"a row has {len(row)} of {len(names)} fields")
        yield dict(zip(names, row, strict=True))


def columns(line: str) -> list[slice]:
    """Returns the columns that a line of dashes marks, the last without an end; none if it is another line."""
    ends = [dashes.end() for dashes in re.finditer("-+", line)] if _DASHES.fullmatch(line) else []
    return [slice(start, end) for start, end in pairwise((0, *ends[:-1], None))] if ends else []


def cells(line: str, spans: Sequence[slice]) -> list[str]:
    """Returns the cells of a line, in these columns; without columns, it is a line of CSV."""
    try:
        parts = [line[span] for span in spans] or next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise damaged(str(error)) from None
    return [part.strip() for part in parts]


def number(row: dict[str, str], column: str) -> float:
    """Returns the number in a column, which is from 0 to 10^18."""
    value = units.number(row.get(column, ""))
    if value is None or not 0 <= value < 1e18:
        raise damaged(f"{column} is {row.get(column, '')[:40]!r}")
    return value
