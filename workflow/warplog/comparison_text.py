"""A comparison as text: a table for a terminal, Markdown, CSV and JSON."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any, TextIO

from warplog import remarks
from warplog.comparison import Change, Comparison, Row
from warplog.tabular import printable
from warplog.verdicts import percent

_KEY = ("family", "variant", "case", "verdict")
_NUMBERS = ("A us", "time", "99 % interval", "least gap", "cycles", "p", "effect")
_WORDS = ("counters", "remarks")


def show(found: Comparison, out: TextIO) -> None:
    """The rows for people, and how many there are of each verdict."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in _KEY:
        table.add_column(title, no_wrap=True)
    for title in _NUMBERS:
        table.add_column(title, justify="right", no_wrap=True)
    for title in _WORDS:
        table.add_column(title, overflow="fold")
    for row in folded(found.rows):
        table.add_row(*(Text(cell) for cell in _cells(row)))
    console = Console(file=out, highlight=False, width=None if out.isatty() else 190)
    console.print(table)
    print(found.summary(), file=out)


def folded(rows: Sequence[Row]) -> list[Row]:
    """The rows for people: one for a family, or a variant, that was refused throughout for one reason."""
    lines: list[Row] = []
    for _, group in groupby(rows, lambda row: row.family):
        family = list(group)
        variants = [list(cases) for _, cases in groupby(family, lambda row: row.variant)]
        if len(variants) > 1 and _is_one(family):
            lines.append(replace(family[0], variant=f"{len(variants)} variants", case=f"{len(family)} cases"))
            continue
        for cases in variants:
            lines += [replace(cases[0], case=f"{len(cases)} cases")] if _is_one(cases) else cases
    return lines


def _is_one(rows: Sequence[Row]) -> bool:
    """Whether several rows say no more than one of them."""
    refused = {row.word for row in rows} == {"REFUSED"}
    return refused and len(rows) > 1 and len({(row.reason, row.remarks) for row in rows}) == 1


def as_json(found: Comparison) -> str:
    """For programs: status (0 or 1), names, summary, claims as lines, all rows; an infinite ratio is null."""
    rows = [asdict(row) for row in found.rows]
    for row in rows:
        for change in row["changes"]:
            change["ratio"] = change["ratio"] if math.isfinite(change["ratio"]) else None
    about: dict[str, object] = {
        "status": found.status,
        "a": found.a,
        "b": found.b,
        "gpu": found.gpu,
        "summary": found.summary(),
    }
    about["claims"] = [_claim(row) for row in found.rows if row.word in ("SLOWER", "FASTER")]
    return json.dumps({**about, "rows": rows}, indent=1, allow_nan=False) + "\n"


def as_markdown(found: Comparison) -> str:
    """What is not SAME as a table, and the counts."""
    first, *rest = found.summary().splitlines()
    heads = (*_KEY, *_NUMBERS, *_WORDS)
    rows = [row for row in folded(found.rows) if row.word != "SAME"]
    told = [dict(zip(heads, _cells(row), strict=True)) for row in rows]
    shown = markdown_table(told, right=_NUMBERS) if told else "Every case is the SAME."
    return "\n\n".join([f"# {_plain(first)}", *map(_plain, rest), shown]) + "\n"


def markdown_table(rows: Sequence[Mapping[str, object]], right: Sequence[str] = ()) -> str:
    """Rows with the same keys as a Markdown table; the columns `right` are aligned there."""
    lines = [" | ".join(rows[0]), "|".join("--:" if name in right else "---" for name in rows[0])]
    lines += [" | ".join(_plain(str(value)) for value in row.values()) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def as_csv(*found: Comparison) -> str:
    """One row for each case: the verdict and the numbers that it rests on; ratios are B over A."""
    return csv_of([{"a": one.a, "b": one.b, **_flat(row)} for one in found for row in one.rows])


def csv_of(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows with the same keys as CSV; nothing without any."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat(row: Row) -> dict[str, Any]:
    flat: dict[str, Any] = {
        "family": row.family,
        "variant": row.variant,
        "case": row.case,
        "verdict": row.word,
    }
    verdict = row.verdict
    flat |= {"confirmed": bool(verdict and verdict.confirmed), "reason": row.reason}
    names = ("before_us", "ratio", "low", "high", "p", "effect", "least_gap", "cycles_ratio", "cycles_p")
    flat |= dict.fromkeys(names)
    if verdict:
        time, cycles = verdict.time, verdict.cycles
        numbers = (verdict.before_us, time.ratio, time.low, time.high, verdict.p, time.effect, verdict.least)
        flat |= dict(zip(names, numbers, strict=False))
        flat |= {"cycles_ratio": cycles.ratio if cycles else None, "cycles_p": verdict.p_cycles}
    return flat | {"counters": row.counters, "changes": _changes(row), "remarks": remarks.join(*row.remarks)}


def _cells(row: Row) -> list[str]:
    found, changes = row.verdict, _changes(row)
    last = [f"{row.counters}: {changes}" if changes else row.counters]
    last.append(remarks.join(row.reason, *row.remarks))
    key = [row.family, row.variant, row.case, row.word]
    numbers = [""] * len(_NUMBERS)
    if found is not None:
        interval = f"{percent(found.time.low)} to {percent(found.time.high)}"
        cycles = percent(found.cycles.ratio) if found.cycles else "n/a"
        gap = f"{100 * found.least:.2f} %"
        numbers = [f"{found.before_us:.5g}", percent(found.time.ratio), interval, gap, cycles]
        numbers += [f"{found.p:.1g}", f"{found.time.effect:+.2f}"]
    return [printable(cell) for cell in (*key, *numbers, *last)]


def _claim(row: Row) -> str:
    change = percent(row.verdict.time.ratio) if row.verdict else ""
    return printable(f"{row.word}  {row.family}/{row.variant}  {row.case}  {change}")


def _changes(row: Row) -> str:
    return ", ".join(f"{change.counter} {_change(change)}" for change in row.changes)


def _change(change: Change) -> str:
    return percent(change.ratio) if math.isfinite(change.ratio) else f"0 to {change.after:.4g}"


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<").replace("`", "\\`")
