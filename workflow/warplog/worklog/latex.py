"""The tables of a worklog in LaTeX, for an article; needs booktabs and a Unicode engine or inputenc."""

from warplog.tabular import Table, one_line
from warplog.worklog.page import Page, Rung

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%",
    "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "`": r"\textasciigrave{}",
    "[": "{[}", "]": "{]}", "*": "{*}",  # after a row's end they would be its argument
    "→": r"$\rightarrow$", "−": r"$-$", "×": r"$\times$", "µ": r"\textmu{}",
}  # fmt: skip
_WIDE = 40


def latex(page: Page) -> str:
    """The ladder, the summaries, and each rung's factors and states, as tables with captions and labels."""
    about = "; ".join(f"{what}: {text}" for what, text in page.facts)
    parts = [f"% {one_line(about)}", "% \\usepackage{booktabs,textcomp}"]
    parts += [_float(page, "ladder", f"{page.title}: the ladder", _ladder(page.rungs))]
    for number, summary in enumerate(page.summaries, 1):
        parts.append(_float(page, f"summary-{number}", summary.heading, summary.table))
    for rung in page.rungs:
        for kind, title, table in (
            ("factors", "what the step is made of", rung.factors),
            ("states", "where the parent's cycles went", rung.states),
            ("claims", "what was claimed", rung.claims),
            ("published", "beside what others printed", rung.printed),
        ):
            if table:
                parts.append(_float(page, f"{rung.name}-{kind}", f"{rung.name}: {title}", table))
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text on one line that LaTeX sets as it is."""
    return "".join(_SPECIAL.get(character, character) for character in one_line(text))


def _ladder(rungs: tuple[Rung, ...]) -> Table:
    told = (", ".join(f"{value} {what}" for value, what in rung.figures) or rung.gap for rung in rungs)
    rows = tuple((rung.name, rung.idea, text) for rung, text in zip(rungs, told, strict=True))
    return Table(("variant", "idea", "speed"), rows)


def _float(page: Page, label: str, caption: str, table: Table) -> str:
    columns = "".join(_column(table, column) for column in range(len(table.titles)))
    lines = [r"\begin{table}[htbp]", r"\centering", rf"\caption{{{escape(caption)}}}"]
    lines += [
        rf"\label{{tab:{_label(f'{page.family}-{label}')}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
    ]
    lines += [_row(table.titles), r"\midrule", *(_row(row) for row in table.rows), r"\bottomrule"]
    lines += [
        r"\end{tabular}",
        *(rf"\par\footnotesize {escape(note)}" for note in table.notes),
        r"\end{table}",
    ]
    return "\n".join(lines)


def _column(table: Table, column: int) -> str:
    """Numbers to the right; long texts in a column that breaks lines."""
    if column in table.numeric:
        return "r"
    return r"p{0.35\linewidth}" if max((len(row[column]) for row in table.rows), default=0) > _WIDE else "l"


def _row(cells: tuple[str, ...]) -> str:
    return " & ".join(map(escape, cells)) + r" \\"


def _label(text: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "-" for c in text)
