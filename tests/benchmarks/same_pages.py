"""Compares the numbers on two sets of HTML pages, by family and variant; those of the new pages are `<data>` elements.

    python tests/benchmarks/same_pages.py OLD_WORKLOG NEW_WORKLOG

Two numbers are the same if they have the same unit and differ by no more than their rounding. Prints what is DIFFERENT
under the same words or in the same row and column of a table, what is NEW in a section, and what is GONE from the page;
at the end, counts. The exit status is 1 if a number is different.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
SKIPPED = {"pre", "svg", "script", "style"}
UNIT = r"µs|ms|[kMGT]?B(?:/s)?|[MGT]FLOP/s|MHz|W\b|%|x\b|times\b|[kMGT]\b|"
NUMBER = re.compile(rf"(?<![\w.\-/#:])([−-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)[ \xa0]?({UNIT})(?![\w:]|\.\d)")
UNITS = {"µs": (1, "µs"), "ms": (1e3, "µs"), "MHz": (1, "MHz"), "times": (1, "x")}
SUFFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
# The words around a number on the old pages, by table and column of the new ones.
SAID = {
    "ladder/speed": r"^\d+ \w+(?: \w+)*? N",
    "ladder/share_pct": r" at \S+ N of ",
    "bounds/ceiling_pct": r"(?:bound by|busiest unit is) [^.]*?, at N of its peak",
    "bounds/stall_pct": r"\( ?N of warp cycles",
    "bounds/dram_bytes": r"moves N to and from device memory",
    "bounds/compulsory_bytes": r"compulsory N",
    "bounds/theoretical_pct": r"Theoretical occupancy is N",
    "bounds/achieved_pct": r"achieved occupancy is N",
    "bounds/conflicts_pct": r"Bank conflicts cause N",
}


@dataclass(frozen=True)
class Number:
    """A number as printed, the value of 1 in its base unit, half a unit of its last digit, and what it is.

    `key` has the row and the column of a table, or the table and the column of the words around it.
    """

    text: str
    digits: float
    scale: float
    half: float
    unit: str
    key: frozenset[str]

    def is_like(self, other: "Number") -> bool:
        """Returns whether the two differ by no more than their rounding.

        On old pages, the unit of a table may stand above it, and `saved` is the difference of two rounded numbers.
        """
        if self.unit == other.unit:
            scales = [(self.scale, other.scale)]
        elif self.key == other.key and "" in (self.unit, other.unit):
            scales = [(1.0, 1.0), (1e3, 1.0), (1.0, 1e3)]
        else:
            return False
        most = 3.003 if "saved" in self.key else 1.001
        return any(
            abs(self.digits * mine - other.digits * others) <= most * (self.half * mine + other.half * others)
            for mine, others in scales
        )


def numbers(text: str, key: Sequence[str] = (), unit: str = "") -> Iterator[Number]:
    """Yields the numbers in a text; one without a unit has that of the next one of "1 → 2 µs" or "1 to 2 µs"."""
    found = list(NUMBER.finditer(text))
    units = [one[2] or unit for one in found]
    for n in reversed(range(len(found) - 1)):
        if not units[n] and text[found[n].end() : found[n + 1].start()].strip() in ("→", "to", "or"):
            units[n] = units[n + 1]
    for one, shown in zip(found, units, strict=True):
        digits, _, exponent = one[1].replace("−", "-").partition("e")
        scale, base = UNITS.get(shown) or (SUFFIXES.get(shown[:1], 1), shown.lstrip("kMGT"))
        half = 0.5 * 10.0 ** -len(digits.partition(".")[2])
        parts = {part.removesuffix(" %").replace("saved_us", "saved").replace("_", " ") for part in key}
        scale *= 10.0 ** int(exponent or 0)
        yield Number(one[0].strip(), float(digits), scale, half, base, frozenset(parts - {""}))


@dataclass
class Section:
    """The text of a section, its numbers, and for a new page those of them that are cells."""

    text: str = ""
    numbers: list[Number] = field(default_factory=list)
    cells: list[Number] = field(default_factory=list)


class Page(HTMLParser):
    """The sections of a page by variant; "" is the rest."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.sections: dict[str, Section] = {}
        self.open = [("", "", "")]  # tag, variant, place of a cell
        self.titles: list[str] = []
        self.row: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        for section in self.sections.values():
            section.text = " ".join(section.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given, variant = dict(attrs), self.open[-1][1]
        name = given.get("id") or ""
        if tag not in VOID:
            self.open.append((tag, name.removeprefix("rung-") if name.startswith("rung-") else variant,
                              given.get("data-cell") or ""))  # fmt: skip
        if tag == "tr":
            self.row = []
            self.titles = self.row if self.open[-2][0] == "thead" else self.titles
        elif tag in ("td", "th"):
            self.row.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        tags = {tag for tag, _, _ in self.open}
        if tags & SKIPPED:
            return
        _, variant, place = self.open[-1]
        section = self.sections.setdefault(variant, Section())
        section.text += data if place else f" {data}"
        (table, *_, column), unit = place.split("/") if place else ("", ""), ""
        key = (table, column)
        if tags & {"td", "th"}:
            code = "code" in tags and len(self.row) == 1
            self.row[-1] = data if code else self.row[-1] + data
            title = self.titles[len(self.row) - 1] if len(self.row) <= len(self.titles) else ""
            (label, _, of_row), (title, _, of_column) = self.row[0].partition(", "), title.partition(", ")
            unit = "x" if title == "factor" else of_column or of_row
            key = (label.strip(), column if table == "changes" else title)
        found = list(numbers(data, key, unit if re.fullmatch(UNIT, unit) else ""))
        section.numbers += found
        section.cells += found if place else []


def said(section: Section) -> Iterator[Number]:
    """Yields the numbers of an old page that stand in the words of SAID."""
    for key, words in SAID.items():
        before, after = words.split("N")
        for found in re.finditer(f"{before}({NUMBER.pattern}){after}", section.text):
            yield from (one for one in numbers(found[1], key.split("/")) if one.unit)


def named(one: Number) -> str:
    """Returns what a number is."""
    return ", ".join(sorted(one.key))


def compare(old: Page, new: Page) -> Iterator[tuple[str, str, str]]:
    """Yields variant, kind of finding, and the number with what it is."""
    whole = [one for section in new.sections.values() for one in section.numbers]
    for variant, section in new.sections.items():
        before = old.sections.get(variant, Section())
        labelled = [*said(before), *(one for one in before.numbers if one.key)]
        for cell in dict.fromkeys(section.cells):
            same = [one for one in labelled if one.key == cell.key and one.unit in (cell.unit, "")]
            if any(map(cell.is_like, same)) or (not same and any(map(cell.is_like, before.numbers))):
                yield variant, "same", ""
            elif same:
                yield (
                    variant,
                    "DIFFERENT",
                    f"{cell.text}, was {', '.join(one.text for one in same)} ({named(cell)})",
                )
            else:
                yield variant, "NEW", f"{cell.text} ({named(cell)})"
        for one in dict.fromkeys(before.numbers):
            if not any(map(one.is_like, whole)):
                place = re.search(re.escape(one.text), before.text)
                around = before.text[max(0, place.start() - 50) : place.end() + 20] if place else ""
                yield variant, "GONE", f"{one.text} ({named(one) or around})"


def main(before: Path, after: Path) -> int:
    """Prints the findings; returns 1 if a number is different."""
    counts: Counter[str] = Counter()
    for path in sorted(after.glob("*.html")):
        for variant, kind, what in compare(Page(before / path.name), Page(path)):
            counts[kind] += 1
            if what:
                print(f"{kind}: {path.stem}/{variant}: {what}")
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("same", "DIFFERENT", "NEW", "GONE")))
    return 1 if counts["DIFFERENT"] else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
