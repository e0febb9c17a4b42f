"""Text for people: tables in Markdown, characters that must be escaped, notes in one cell."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
# What makes a heading, a quotation or a list of a line that begins with it.
_BLOCK = re.compile(r"^([0-9]*)([#>]|[-+](?=\s|$)|(?<=[0-9])[.)](?=\s|$))")


@dataclass(frozen=True)
class Table:
    """Cells are plain text: each form of output escapes them.

    Attributes:
        numeric: the columns, from 0, that hold numbers and are set to the right.
        notes: what must be said of the table, one sentence each.
        bars: for each row a share from -1 to 1 to draw in its first cell with a number; empty for none.
    """

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()
    bars: tuple[float, ...] = ()


def markdown_table(table: Table) -> list[str]:
    """The lines of the table, without its notes; columns as wide as their widest cell."""
    cells = [[escape_markdown(cell) for cell in line] for line in (table.titles, *table.rows)]
    widths = [max(3, *(len(line[column]) for line in cells)) for column in range(len(table.titles))]
    rule = ["-" * (width - 1) + ":" if c in table.numeric else "-" * width for c, width in enumerate(widths)]
    return [_markdown_row(line, widths, table.numeric) for line in (cells[0], rule, *cells[1:])]


def _markdown_row(cells: Sequence[str], widths: Sequence[int], numeric: Iterable[int]) -> str:
    right = set(numeric)
    padded = [
        cell.rjust(width) if column in right else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"


def printable(text: str) -> str:
    """The text with a blank for each character that does not print."""
    return "".join(c if c.isprintable() else " " for c in text)


def one_line(text: str) -> str:
    """The text on one line, without characters that do not print."""
    return " ".join(printable(text).split())


def escape_markdown(text: str) -> str:
    """Text on one line that Markdown shows as it is: no table, list, emphasis, link or HTML comes of it.

    An underscore within a word means nothing in Markdown and stays.
    """
    escaped = _SPECIAL.sub(r"\\\1", one_line(text).replace("&", "&amp;").replace("<", "&lt;"))
    escaped = _BLOCK.sub(r"\1\\\2", escaped)
    return re.sub(r"(?<=\w)\\_(?=\w)", "_", escaped)


_BETWEEN = "; "


def join_notes(*remarks: str) -> str:
    """One text of those that are not empty."""
    return _BETWEEN.join(filter(None, remarks))


def split_notes(reason: object) -> list[str]:
    """The remarks that such a text is made of."""
    return [part for part in str(reason).split(_BETWEEN) if part]
