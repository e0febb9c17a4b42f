"""Renders tables and figures of a worklog in LaTeX; requires booktabs, graphicx, tabularx and textcomp.

Long texts are wrapped in a table that is wider than a page of `article`, and a table that is longer than a
page is split into parts, so that every cell stays on the page.
"""

import math
import os
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warplog.core.text import Table, one_line
from warplog.worklog.rungs import Page, Picture, Rung

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%",
    "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "`": r"\textasciigrave{}",
    "[": "{[}", "]": "{]}", "*": "{*}",  # after \\ they would be read as its argument
    "→": r"$\rightarrow$", "−": r"$-$", "×": r"$\times$", "µ": r"\textmu{}", "μ": r"\textmu{}",
    "≤": r"$\leq$", "≥": r"$\geq$", "≈": r"$\approx$", "∞": r"$\infty$", "√": r"$\surd$",
}  # fmt: skip
# For `article` in the font size of the tables: characters per line, between two columns, and lines per page.
_LINE, _GAP, _PAGE = 78, 2, 46
_SMALL_LINE = 88  # characters per line in the smallest font; a wider table is scaled
# Text up to this length is never wrapped; longer text is if the table is wider than the line.
_SHORT = 14
# A figure is as wide as the text unless it would be higher than this; smaller, the text in it could not be read.
_SIZE = r"width=\linewidth,height=0.45\textheight,keepaspectratio"
_HEAD = """\
% Preamble: \\usepackage{booktabs,graphicx,tabularx,textcomp}; with pdflatex also \\usepackage[T1]{fontenc}.
% Copy single tables and figures or include the whole file; \\clearpage before each variant limits pending floats."""


def latex(page: Page, folder: Path) -> str:
    """Returns the figures, the summaries and the tables of each rung, with captions and labels.

    The paths of figures are relative to `folder`, that of the file.
    """
    about = "; ".join(f"{what}: {text}" for what, text in page.facts)
    parts = [f"% {one_line(about)}\n{_HEAD}"]
    first = (*page.key, *([page.ladder] if page.ladder else []))
    parts += [_figure(page, picture, folder) for picture in first]
    steps = replace(_ladder(page.rungs), notes=(page.regimes,) if page.regimes else ())
    parts += _floats(page, "ladder", f"{page.title}: the ladder", steps)
    explained: set[tuple[str, ...]] = set()
    parts += [_figure(page, picture, folder) for picture in page.pictures]
    for number, summary in enumerate(page.summaries, 1):
        parts += _floats(page, f"summary-{number}", summary.heading, _narrow(summary.table))
    for rung in page.rungs:
        parts.append(r"\clearpage")
        for kind, title, table in (
            ("factors", "factors of the step", rung.factors),
            ("states", "warp states of the step", rung.states),
            ("claims", "claims", rung.claims and _narrow(rung.claims)),
            ("published", "published results", rung.printed),
        ):
            if table:
                once = replace(table, notes=() if table.notes in explained else table.notes)
                explained.add(table.notes)
                parts += _floats(page, f"{rung.name}-{kind}", f"{rung.name}: {title}", once)
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Escapes text for LaTeX, on one line; addresses may be broken after a slash."""
    safe = "".join(_SPECIAL.get(character, character) for character in one_line(text))
    return re.sub(r"/(?=\w{3}|\d)", r"/\\allowbreak{}", safe)


def _figure(page: Page, picture: Picture, folder: Path) -> str:
    """Returns a figure; its PDF if there is one, otherwise its PNG."""
    pdf = picture.path.with_suffix(".pdf")
    path = Path(os.path.relpath(pdf if pdf.is_file() else picture.path, folder)).as_posix()
    return "\n".join(
        [
            r"\begin{figure}[tbp]",
            rf"\centering\includegraphics[{_SIZE}]{{{path}}}",
            rf"\caption{{{escape(f'{picture.title}. {picture.caption}')}}}",
            rf"\label{{fig:{_label(f'{page.family}-{picture.name}')}}}",
            r"\end{figure}",
        ]
    )


def _ladder(rungs: tuple[Rung, ...]) -> Table:
    numbers = ((*rung.figures, *([rung.got] if rung.got else [])) for rung in rungs)
    shown = (", ".join(f"{value} {what}" for value, what in each) for each in numbers)
    speeds = (text or rung.gap for text, rung in zip(shown, rungs, strict=True))
    rows = tuple((rung.name, rung.idea, speed) for rung, speed in zip(rungs, speeds, strict=True))
    return Table(("variant", "idea", "speed"), rows)


def _narrow(table: Table) -> Table:
    """Returns a table of claims with the columns that a page is wide enough for; other tables as they are."""
    if table.titles[0] != "claim":
        return table
    rows = []
    for cells in table.rows:
        row = dict(zip(table.titles, cells, strict=True))
        claim = f"{row['claim']} ({row['note']})" if row.get("note") else row["claim"]
        condition = f" ({row['confirmed if']})" if row["confirmed if"] else ""
        published = "; ".join(filter(None, (row["published"], row["source"])))
        rows.append((claim, row["case"], row["measured here"] + condition, row["verdict"], published))
    return Table(("claim", "case", "measured (confirmed if)", "verdict", "published"), tuple(rows))


@dataclass(frozen=True)
class _Columns:
    """The columns of a table in LaTeX, their titles and widths in characters, and whether some are wrapped."""

    kinds: tuple[str, ...]
    widths: tuple[float, ...]
    titles: tuple[str, ...]
    breaking: bool = False


def _floats(page: Page, label: str, caption: str, table: Table) -> Iterator[str]:
    """Yields the table as one float, or as several if it is longer than a page."""
    columns = _columns(table)
    parts = _parts(table, columns)
    for number, part in enumerate(parts, 1):
        of = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
        name = f"{page.family}-{label}{f'-{number}' if number > 1 else ''}"
        yield _float(_label(name), f"{caption}{of}", part, columns)


def _float(label: str, caption: str, table: Table, columns: _Columns) -> str:
    needed = sum(columns.widths) + _GAP * (len(columns.widths) - 1)
    small = needed > _LINE and not columns.breaking
    kind, width = ("tabularx", r"{\linewidth}") if columns.breaking else ("tabular", "")
    shrunk = [r"\resizebox{\linewidth}{!}{%"] if needed > _SMALL_LINE and not columns.breaking else []
    rows = [" & ".join(map(escape, row)) + r" \\" for row in table.rows]
    if columns.breaking:
        rows = [row.replace(r"\_", r"\_\allowbreak{}") for row in rows]
    between = "\n\\addlinespace\n" if columns.breaking else "\n"
    return "\n".join(
        [
            r"\begin{table}[htbp]",
            rf"\centering\{'scriptsize' if small else 'footnotesize'}\setlength{{\tabcolsep}}{{{3 if small else 4}pt}}",
            rf"\caption{{{escape(caption)}}}",
            rf"\label{{tab:{label}}}",
            *shrunk,
            rf"\begin{{{kind}}}{width}{{@{{}}{''.join(columns.kinds)}@{{}}}}",
            r"\toprule",
            " & ".join(columns.titles) + r" \\",
            r"\midrule",
            between.join(rows),
            r"\bottomrule",
            rf"\end{{{kind}}}" + "}" * len(shrunk),
            *(rf"\par\smallskip\parbox{{\linewidth}}{{\raggedright {escape(note)}}}" for note in table.notes),
            r"\end{table}",
        ]
    )


def _columns(table: Table) -> _Columns:
    """Returns the columns: numbers right-aligned; titles and long texts are wrapped if the table is wider than a line.

    Each wrapped column has room for its longest word; the rest of the line is divided in proportion to their
    text.
    """
    cells = list(zip(table.titles, *table.rows, strict=True))
    widths = [float(max(map(len, column))) for column in cells]
    kinds = ["r" if c in table.numeric else "l" for c in range(len(cells))]
    titles = tuple(map(escape, table.titles))
    if sum(widths) + _GAP * (len(widths) - 1) > _LINE:
        below = [max(map(len, column[1:]), default=0) for column in cells]
        lines = [_wrapped(title, width) for title, width in zip(table.titles, below, strict=True)]
        widths = [float(max(w, *map(len, parts))) for w, parts in zip(below, lines, strict=True)]
        titles = tuple(_stacked(parts, kind) for parts, kind in zip(lines, kinds, strict=True))
    text = [c for c, width in enumerate(widths) if kinds[c] == "l" and width > _SHORT]
    room = _LINE - sum(width for c, width in enumerate(widths) if c not in text) - _GAP * (len(widths) - 1)
    if not text or sum(widths[c] for c in text) <= room:
        return _Columns(tuple(kinds), tuple(widths), titles)
    words = {c: max(map(_longest, cells[c])) + 1 for c in text}  # digits are wider than letters
    if sum(words.values()) > room:
        return _Columns(tuple(kinds), tuple(widths), titles)
    held = {c: sum(map(len, cells[c])) for c in text}
    rest = room - sum(words.values())
    for c in text:
        widths[c] = words[c] + rest * held[c] / sum(held.values())
    unit = sum(widths[c] for c in text) / len(text)
    for c in text:
        kinds[c] = rf">{{\hsize={widths[c] / unit:.2f}\hsize\raggedright\arraybackslash\hspace{{0pt}}}}X"
        titles = (*titles[:c], escape(table.titles[c]), *titles[c + 1 :])
    return _Columns(tuple(kinds), tuple(widths), titles, breaking=True)


def _wrapped(title: str, width: int) -> list[str]:
    """Returns a title on lines of at most `width` characters if its words and the parts of its names allow it."""
    lines = textwrap.wrap(re.sub(r"_(?=\w)", "_ ", title), max(width, 1), break_long_words=False)
    return [line.replace("_ ", "_") for line in lines]


def _stacked(lines: Sequence[str], kind: str) -> str:
    """Returns a title on several lines, aligned like its column."""
    if len(lines) < 2:
        return escape("".join(lines))
    rows = r"\\".join(map(escape, lines))
    return rf"\begin{{tabular}}[b]{{@{{}}{kind}@{{}}}}{rows}\end{{tabular}}"


def _longest(text: str) -> int:
    """Returns the length of the longest word; long names may be broken after an underscore."""
    words = re.split(r"[\s/]", text)
    return max(len(w) if len(w) <= _SHORT else max(map(len, re.split(r"(?<=_)", w))) for w in words)


def _parts(table: Table, columns: _Columns) -> list[Table]:
    """Splits the table into parts that fit on a page; the notes go to the first part."""
    parts: list[list[tuple[str, ...]]] = [[]]
    height = float(sum(1 + len(note) // _LINE for note in table.notes))
    for row in table.rows:
        # The factor 1.2 allows for lines that are not filled because a word does not fit.
        lines = [
            math.ceil(1.2 * len(cell) / width)
            for cell, width in zip(row, columns.widths, strict=True)
            if cell
        ]
        needed = max(lines, default=1) + 0.5 if columns.breaking else 1.0
        if parts[-1] and height + needed > _PAGE:
            parts.append([])
            height = 0.0
        parts[-1].append(row)
        height += needed
    cut = [replace(table, rows=tuple(rows), notes=()) for rows in parts]
    return [replace(cut[0], notes=table.notes), *cut[1:]]


def _label(text: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "-" for c in text)
