"""Text output: Markdown tables, escaping, and several notes in one cell."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
# At the start of a line these make a heading, a quotation or a list.
_BLOCK = re.compile(r"^([0-9]*)([#>]|[-+](?=\s|$)|(?<=[0-9])[.)](?=\s|$))")


@dataclass(frozen=True)
class Table:
    """A table with plain-text cells; each output format escapes them.

    Attributes:
        numeric: indices, from 0, of the columns with numbers, which are right-aligned.
        notes: notes on the table, one sentence each.
    """

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()


def markdown_table(table: Table) -> list[str]:
    """Returns the lines of a Markdown table, without its notes; columns are padded to their widest cell."""
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


# Control and formatting characters: they move the cursor, reverse the direction of text or cannot be seen. Line ends
# and tabs are text. The ranges are Unicode's categories Cc, Cf, Cs, Zl and Zp; a test compares them with unicodedata.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u2064\u2066-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)


def visible(text: str) -> str:
    r"""Returns the text with hidden characters as escapes such as `\u{202e}`; line ends, tabs and spaces stay."""
    return HIDDEN.sub(lambda match: rf"\u{{{ord(match[0]):x}}}", text)


class Screen:
    """A text stream through which everything is printed that may come from a record, a report or another machine.

    Hidden characters are shown as escapes. It says that it is no terminal, so that nothing colours its output: what is
    drawn in colours is made `visible` text by text and written to `stream`.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Writes the visible text."""
        self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes each of the lines."""
        for line in lines:
            self.write(line)

    def isatty(self) -> bool:
        """Returns False."""
        return False

    def __getattr__(self, name: str) -> Any:
        """Returns everything else as the stream has it."""
        return getattr(self.stream, name)


def printable(text: str) -> str:
    """Replaces each non-printable character by a space."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def one_line(text: str) -> str:
    """Returns the text on one line, without non-printable characters and repeated spaces."""
    return " ".join(printable(text).split())


def escape_markdown(text: str) -> str:
    """Escapes text so that Markdown shows it verbatim on one line, without tables, lists, emphasis, links or HTML.

    An underscore within a word has no meaning in Markdown and is kept.
    """
    escaped = _SPECIAL.sub(r"\\\1", one_line(text).replace("&", "&amp;").replace("<", "&lt;"))
    escaped = _BLOCK.sub(r"\1\\\2", escaped)
    return re.sub(r"(?<=\w)\\_(?=\w)", "_", escaped)


def listed(texts: Sequence[str]) -> str:
    """Joins texts: "a", "a and b", "a, b and c"."""
    return " and ".join([*([", ".join(texts[:-1])] if texts[:-1] else []), *texts[-1:]])


def join_notes(*notes: str) -> str:
    """Joins the notes that are not empty into one text."""
    return "; ".join(filter(None, notes))
