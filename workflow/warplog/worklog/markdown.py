"""Renders a worklog as Markdown; the figures are linked, not copied."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from warplog.core import text as tabular
from warplog.core.text import Table, escape_markdown, visible
from warplog.worklog.pictures.story import path_table
from warplog.worklog.rungs import Page, Picture, Rung


def markdown(page: Page, folder: Path) -> str:
    """Returns the page as Markdown for a file in `folder`; links to figures are relative to it."""
    lines = [f"# {escape_markdown(page.title)}", "", _quoting(page.summary), ""]
    lines += [escape_markdown(" ".join(page.lead)), ""]
    lines += [escape_markdown(page.regimes), ""] if page.regimes else []
    lines += [
        *tabular.markdown_table(Table(("", ""), page.facts)),
        "",
        escape_markdown(" ".join(page.method)),
        "",
    ]
    for picture in (*page.key, *([page.ladder] if page.ladder else [])):
        lines += [*_picture(picture, folder), ""]
    if page.waterfall:
        lines += ["## The main path", "", *tabular.markdown_table(path_table(page.waterfall)), ""]
    if page.notes:
        lines += ["## How to read the tables", "", *(f"- {escape_markdown(note)}" for note in page.notes), ""]
    for place, rung in enumerate(page.rungs, 1):
        lines += [*_rung(place, rung), ""]
    if page.waiting:
        lines += ["## Not measured yet", "", *tabular.markdown_table(page.waiting), ""]
    for summary in page.summaries:
        lines += [f"## {escape_markdown(summary.heading)}", "", *tabular.markdown_table(summary.table), ""]
        lines += [escape_markdown(note) for note in summary.table.notes] + [""] * bool(summary.table.notes)
    for picture in page.pictures:
        lines += [f"## {escape_markdown(picture.title)}", "", *_picture(picture, folder), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _quoting(text: str) -> str:
    """Escapes the text, except backticks around a name."""
    return re.sub(r"\\`([\w.]+)\\`", r"`\1`", escape_markdown(text))


def _rung(place: int, rung: Rung) -> Iterator[str]:
    beside = ", ".join(escape_markdown(word) for word in (rung.language, rung.badge) if word)
    yield f"## {place}. {escape_markdown(rung.name)}{f' ({beside})' if beside else ''}"
    yield from ("", f"*{escape_markdown(rung.idea)}*")
    figures = (f"**{escape_markdown(value)}** {escape_markdown(what)}" for value, what in rung.figures)
    paragraphs = (
        escape_markdown("; ".join(rung.origins)),
        f"**{escape_markdown(rung.gap)}**" if rung.gap else "",
        f"Expected: {_quoting(rung.header.expected)}" if rung.header.expected else "",
        _outcome(rung),
        ", ".join(figures),
        escape_markdown(rung.noise),
        *(escape_markdown(f"Note: {remark.removesuffix('.')}.") for remark in rung.remarks),
    )
    for text in filter(None, paragraphs):
        yield from ("", text)
    if rung.excerpt:
        longest = max(map(len, re.findall("`+", rung.excerpt.code)), default=0)
        fence = "`" * max(3, longest + 1)
        language = "python" if rung.excerpt.is_python else "cuda"
        yield from ("", f"{fence}{language}", visible(rung.excerpt.code), fence)
        yield f"{escape_markdown(rung.excerpt.file)}, from line {rung.excerpt.first}"
    for texts in (rung.story, rung.limits):
        if texts:
            yield from ("", escape_markdown(" ".join(texts)))
    for table in (rung.factors, rung.states, rung.lines, rung.printed, rung.claims):
        if table:
            yield from ("", *tabular.markdown_table(table))


def _outcome(rung: Rung) -> str:
    """Returns what to compare with the expectation; "" if there is nothing."""
    got, elsewhere = (
        [f"**{escape_markdown(value)}** {escape_markdown(what)}" for value, what in numbers]
        for numbers in ([rung.got] if rung.got else [], rung.elsewhere)
    )
    found = [text for text in (*got, rung.answer, *elsewhere, rung.verdict) if text]
    return f"Got: {'; '.join(found)}." if found and rung.header.expected else ""


def _picture(picture: Picture, folder: Path) -> list[str]:
    where = Path(os.path.relpath(picture.path, folder)).as_posix()
    return [f"![{escape_markdown(picture.title)}](<{where}>)", "", escape_markdown(picture.caption)]
