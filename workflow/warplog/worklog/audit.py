"""Audits the pages of a campaign: every number on them is a cell of a table, rounded by the one rule.

A digit that a reader sees is in a `<data>` that names its cell (worklog/cells.py). Exempt are texts of authors (class
"authored"), code, names (class "name" or `<time>`, L1 and L2 anywhere), pictures (also the marks of class "axis"), and
whole numbers that count what the page lists (class "count").
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import TextIO

from warplog.core.columns import Row
from warplog.core.errors import WarplogError
from warplog.core.files import read_bytes
from warplog.core.paths import command
from warplog.core.text import one_line, visible
from warplog.records.verification import manifest
from warplog.tables.files import as_rows, read_table
from warplog.worklog.cells import KEYS, Cells, Number, place_of

_MOST_BYTES = 64 * 1024**2
_DEEPEST = 200
_MOST_TEXT = 160  # characters of a finding
_VOID = frozenset(("area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"))
_EXEMPT_TAGS = frozenset(("pre", "code", "time", "svg", "script", "style"))
_EXEMPT_CLASSES = frozenset(("authored", "name", "axis"))
_CACHES = re.compile(r"\bL[12]\b(?!\.\d)")
_COUNT = re.compile(r"\s*[0-9]+\s*")
_READ = ("title", "alt", "aria-label", "aria-description", "placeholder", "label")  # attributes for readers


@dataclass(frozen=True)
class Finding:
    """A number that differs from its cell, or has none.

    Attributes:
        section: The nearest id on the page.
        text: The number, with its `value`; or the text with a number of no cell.
        why: What the cell holds.
    """

    page: str
    line: int
    section: str
    text: str
    why: str

    def __str__(self) -> str:
        """Returns it on one line."""
        return visible(f"{self.page}:{self.line}: #{self.section}: {self.text}: {self.why}")


@dataclass
class Audit:
    """How many numbers were checked, those that differ from their cells, and texts with numbers without a cell."""

    checked: int = 0
    wrong: list[Finding] = field(default_factory=list)
    bare: list[Finding] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every number is that of its cell."""
        return not self.wrong and not self.bare


def audit(folder: Path, stream: TextIO) -> Audit:
    """Audits worklog/*.html of a results folder with its tables, and prints the findings and their number.

    Raises:
        WarplogError: There are no pages, a page is too large or no well-formed HTML, a table is missing or not
            readable, or a file of a recorded campaign is not as its manifest says.
    """
    manifest.check(folder)
    pages = sorted((folder / "worklog").glob("*.html"))
    if not pages:
        raise WarplogError(f"{folder}/worklog: no pages; run `{command('worklog')}`")
    result, tables = Audit(), _Tables(folder / "tables")
    for path in pages:
        page = _Page(path, tables, result)
        page.feed(read_bytes(path, _MOST_BYTES, f"run `{command('worklog')}`").decode(errors="replace"))
        page.close()
    for finding in (*result.wrong, *result.bare):
        print(finding, file=stream)
    print(
        f"checked {result.checked} numbers, {len(result.wrong)} wrong,"
        f" {len(result.bare)} texts with numbers of no cell",
        file=stream,
    )
    return result


class _Tables:
    """The numbers in a folder of tables, by their place."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: dict[str, dict[tuple[str, ...], Row]] = {}

    def number(self, place: str) -> Number | None:
        """Returns the number at a place; None if there is none."""
        table, keys, column = place_of(place) if place.count("/") else ("", (), "")
        if table not in KEYS:
            return None
        if table not in self._rows:
            rows = as_rows(read_table(self._folder, table))
            self._rows[table] = {tuple(str(row.get(key)) for key in KEYS[table]): row for row in rows}
        row = self._rows[table].get(keys, {})
        cell = getattr(Cells(table, row), column) if column in row else None
        return cell if isinstance(cell, Number) else None


@dataclass
class _Element:
    """An open element: `section` is the nearest id, `text` what a `<data>` shows."""

    tag: str
    attributes: Mapping[str, str]
    section: str
    is_exempt: bool
    line: int
    text: str = ""


class _Page(HTMLParser):
    """Reads a page, whose elements must be closed in order: an exempt one reaches no further than it seems to."""

    def __init__(self, path: Path, tables: _Tables, result: Audit) -> None:
        super().__init__()
        self._path, self._tables, self._result = path, tables, result
        self._open = [_Element("", {}, "", False, 0)]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in reversed(attrs)}  # the first one of a name counts
        above = self._open[-1]
        if above.tag == "data" or len(self._open) > _DEEPEST:
            raise self._malformed(f"<{tag}> in <{above.tag}>")
        exempt = tag in _EXEMPT_TAGS or not _EXEMPT_CLASSES.isdisjoint(given.get("class", "").split())
        section = given.get("id", above.section)
        self._open.append(_Element(tag, given, section, above.is_exempt or exempt, self.getpos()[0]))
        for name in _READ:
            self._check_bare(given.get(name, ""))
        if tag in _VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if self._open[-1].tag != tag:
            raise self._malformed(f"</{tag}> closes <{self._open[-1].tag}>")
        element = self._open.pop()
        if tag == "data":
            self._check(element)

    def handle_data(self, data: str) -> None:
        if self._open[-1].tag == "data":
            self._open[-1].text += data
        else:
            self._check_bare(data)

    def close(self) -> None:
        super().close()
        if len(self._open) > 1:
            raise self._malformed(f"<{self._open[-1].tag}> is not closed")

    def _check_bare(self, text: str) -> None:
        element = self._open[-1]
        letters = enumerate(_CACHES.sub("L_", text))
        first = next((place for place, letter in letters if letter.isnumeric()), None)
        if first is None or element.is_exempt:
            return
        if "count" not in element.attributes.get("class", "").split() or not _COUNT.fullmatch(text):
            self._report(
                self._result.bare, self.getpos()[0] + text.count("\n", 0, first), text, "has no cell"
            )

    def _check(self, element: _Element) -> None:
        self._result.checked += 1
        value, place = (element.attributes.get(name, "") for name in ("value", "data-cell"))
        cell = self._tables.number(place)
        if cell is None:
            why = f"there is no number {place}" if place else "names no cell"
        elif not _is(value, cell.value) or element.text != str(cell):
            why = f"{place} is {cell.value!r}, shown as {cell}"
        else:
            return
        self._report(self._result.wrong, element.line, f"{element.text} ({value})", why)

    def _report(self, findings: list[Finding], line: int, text: str, why: str) -> None:
        shown = one_line(visible(text))[:_MOST_TEXT]
        findings.append(Finding(self._path.name, line, self._open[-1].section, shown, why))

    def _malformed(self, why: str) -> WarplogError:
        return WarplogError(f"{self._path}:{self.getpos()[0]}: {why}; run `{command('worklog')}`")


def _is(text: str, value: float) -> bool:
    try:
        return float(text) == value
    except ValueError:
        return False
