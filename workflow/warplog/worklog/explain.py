"""`warplog explain`: why a variant is faster than its parent and what bounds it, in sentences and tables.

It reports only what the counters support: which factors and warp states account for the cycles, and the
remainder. Missing counters, and ratios that the counters do not explain, are reported as such.
"""

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

from warplog.analysis.bounds import Bound
from warplog.analysis.decomposition import Step
from warplog.analysis.explanation import Explanation, Sources
from warplog.core.text import escape_markdown, markdown_table
from warplog.tables.files import as_rows, read_table
from warplog.tables.view import FigureTables
from warplog.worklog.sentences import brief, sentence
from warplog.worklog.step_tables import bound_table, factor_table, state_table


def families(folder: Path) -> list[str]:
    """Returns the families in the tables of `folder`.

    Raises:
        WarplogError: if the table of variants is missing or not readable.
    """
    return [str(name) for name in read_table(folder, "variants")["family"].drop_duplicates()]


def markdown(tables: FigureTables, sources: Sources = MappingProxyType({}), whole: bool = False) -> str:
    """Returns Markdown with each step on a line and at most three reasons below it.

    If `whole`, all sentences about each step instead, its factors and warp states, and what bounds each kernel.
    """
    explanation = Explanation(tables, sources)
    first = as_rows(tables.measurements.head(1))
    facts = [str(row[name]) for row in first for name in ("gpu_name", "campaign", "origin") if row.get(name)]
    lines = [f"# {escape_markdown(tables.family)}: why each step is faster or slower", ""]
    about = "; ".join(filter(None, (f"Case {tables.profiled_case}", ", ".join(facts))))
    lines += [f"{escape_markdown(about)}.", ""]
    for step in explanation.steps:
        head, *reasons = (sentence(step),) if whole else brief(step)
        lines.append(f"- **{escape_markdown(step.variant)}**: {escape_markdown(head)}")
        lines += [f"  - {escape_markdown(reason)}" for reason in reasons]
    if whole:
        lines += _tables(explanation.steps, explanation.bounds)
    return "\n".join(lines) + "\n"


def _tables(found: Sequence[Step], limits: Sequence[Bound]) -> list[str]:
    lines = []
    for title, table in (
        ("Factors of each step", factor_table(found)),
        ("Warp states of each step", state_table(found)),
        ("What bounds each variant", bound_table(limits)),
    ):
        if table.rows:
            notes = [escape_markdown(note) for note in table.notes]
            lines += ["", f"## {title}", "", *notes, *([""] if notes else []), *markdown_table(table)]
    return lines
