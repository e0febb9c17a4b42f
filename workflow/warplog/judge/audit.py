"""Audits the pages of a campaign: every number and comparison in their Markdown is computed again from the tables.

A page is read line by line. Each rule below recognises one form of words or table and yields the numbers it prints with
those that the tables give. Numbers that no rule recognises are reported too, so that the coverage is known.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from warplog.core.errors import WarplogError
from warplog.core.paths import command
from warplog.core.text import one_line, printable
from warplog.judge import evidence
from warplog.judge.audited import Check, Place, agrees
from warplog.judge.audited_sentences import RULES
from warplog.judge.audited_tables import TABLES
from warplog.judge.evidence import Evidence
from warplog.records import remarks
from warplog.records.verification import manifest

# A number: not a part of a name (float64, L2, x128) and not followed by a letter (64Mi), which names a case.
_NUMBER = re.compile(r"(?<![\w.\-/#])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")


@dataclass(frozen=True)
class Finding:
    """A printed number or comparison that the tables do not give.

    `recomputed` is "" if no rule attributes the number.
    """

    page: str
    line: int
    printed: str
    recomputed: str
    text: str


@dataclass
class Audit:
    """The result: how many numbers were checked, and what was found."""

    checked: int = 0
    wrong: list[Finding] = field(default_factory=list)
    unattributed: list[Finding] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every number was attributed and is right."""
        return not self.wrong and not self.unattributed


def audit(folder: Path, stream: TextIO) -> Audit:
    """Audits worklog/*.md of a results folder with its tables, and prints the findings and the coverage.

    Raises:
        WarplogError: There are no pages, a table is missing or not readable, or a file of a recorded campaign is not as
            its manifest says.
    """
    manifest.check(folder)
    pages = sorted((folder / "worklog").glob("*.md"))
    if not pages:
        raise WarplogError(f"{folder}/worklog: no pages; run `{command('worklog')}`")
    whole = Audit()
    for path in pages:
        text = path.read_text(encoding="utf-8")
        PageAudit(path.name, evidence.read(folder / "tables", path.stem), whole).run(text)
    for found in whole.wrong:
        numbers = f"printed {found.printed}, recomputed {found.recomputed}"
        print(printable(f"{found.page}:{found.line}: {numbers}: {found.text}"), file=stream)
    for found in whole.unattributed:
        line = f"{found.page}:{found.line}: not attributable: {found.printed}: {found.text}"
        print(printable(line), file=stream)
    print(
        f"checked {whole.checked} numbers, {len(whole.unattributed)} not attributable, {len(whole.wrong)} wrong",
        file=stream,
    )
    return whole


class PageAudit:
    """Audits one page; `variant` is the variant that the line is about, `section` its heading."""

    def __init__(self, page: str, known: Evidence, result: Audit) -> None:
        self.page, self.known, self.result = page, known, result
        self.place = Place(known)
        names = sorted({*known.variants, *known.cases}, key=len, reverse=True)
        self.names = re.compile("|".join(rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in names))

    def run(self, source: str) -> None:
        """Audits all lines except code, the family's summary, and captions, which explain how to read a figure."""
        fenced, caption = "", False
        for number, line in enumerate(source.splitlines(), 1):
            mark = re.match(r"`{3,}", line)
            if mark and (not fenced or line.startswith(fenced)):
                fenced = "" if fenced else mark[0]
                continue
            if not line.strip():
                self.place.header = []
            else:
                quoted, caption = number == _SUMMARY or caption, line.startswith("![")
                if not (fenced or mark or quoted or caption):
                    self._line(number, _plain(line))

    def _line(self, number: int, line: str) -> None:
        if self.place.section in _EXPLAINED and not line.startswith("#"):
            return
        if line.startswith("#"):
            self._heading(number, line)
        elif line.startswith("|"):
            self._row(
                number, [cell.strip().replace(_PIPE, "|") for cell in line.strip().strip("|").split("|")]
            )
        else:
            self.place.header = []
            self._text(number, line)

    def _heading(self, number: int, line: str) -> None:
        found = re.match(r"## (\d+)\. (\S+)", line)
        self.place.variant, self.place.section = "", line.lstrip("# ")
        if found and found[2] in self.known.variants:
            self.place.variant = found[2]
            place = list(self.known.variants).index(found[2]) + 1
            self._judge(number, [Check(found[1], place, exact=True)], line)

    def _text(self, number: int, line: str) -> None:
        """Applies the rules to a sentence, and reports the numbers that none of them consumes."""
        rest = line
        for allowed in self._quoted():
            rest = rest.replace(allowed, " ")
        for pattern, checks in RULES:
            matches = list(re.finditer(pattern, rest))
            for found in matches:
                self._judge(number, checks(self.place, *found.groups()), found[0])
            if matches:
                rest = re.sub(pattern, lambda found: " " * len(found[0]), rest)
        self._leftover(number, rest, line)

    def _leftover(self, number: int, rest: str, line: str) -> None:
        for found in _NUMBER.findall(self.names.sub(" ", rest)):
            self.result.unattributed.append(Finding(self.page, number, found, "", line.strip()[:160]))

    def _quoted(self) -> list[str]:
        """Returns the texts that are quoted from the tables and from the sources: no results."""
        row = self.known.variants.get(self.place.variant, {})
        texts = [str(row.get(name) or "") for name in ("idea", "credit", "compile", "expected")]
        measured = self.known.rows.get((self.place.variant, self.known.case), {})
        at_rest = self.known.measured(self.place.variant, "set_mhz") > 0
        regimes = {
            "rest": "at rest" if at_rest else "with a cold L2",
            "hot": "in short bursts with a warm L2",
        }
        notes = [one.words() for one in remarks.read(measured.get("remarks"))]
        notes.append(remarks.agreement_words(remarks.read_notes(measured.get("agreement_notes")), regimes))
        return sorted(filter(_NUMBER.search, map(one_line, [*texts, *notes])), key=len, reverse=True)

    def _judge(self, number: int, checks: Iterator[Check] | Sequence[Check], text: str) -> None:
        for check in checks:
            self.result.checked += 1
            if not agrees(check):
                truth = check.truth if isinstance(check.truth, str) else f"{check.truth:.6g}"
                self.result.wrong.append(Finding(self.page, number, check.printed, truth, text.strip()[:160]))

    def _row(self, number: int, cells: list[str]) -> None:
        if not self.place.header:
            self.place.header = cells
            return
        if all(re.fullmatch(r"-+:?", cell) for cell in cells):
            return
        line = " | ".join(cells)
        kind = tuple(self.place.header[:2])
        reader = TABLES.get(kind) or TABLES.get((kind[0], ""))
        if reader is None:
            self._leftover(number, line, line)
            return
        self._judge(
            number, reader(self.place, dict(zip(self.place.header, cells, strict=False)), cells), line
        )


_SUMMARY = 3  # line of the family's summary
# Sections without results of this campaign: how to read the tables, and drafts with published numbers.
_EXPLAINED = ("How to read the tables", "Not measured yet")
_PIPE = "\x00"


def _plain(line: str) -> str:
    """Returns a line of Markdown without its escapes; an escaped bar in a table becomes a placeholder."""
    line = line.replace(r"\|", _PIPE).replace("&lt;", "<").replace("&amp;", "&")
    line = re.sub(r"\\([\\`*_\[\]~$#>.)+-])", r"\1", line)
    return line if line.startswith("|") else line.replace(_PIPE, "|")
