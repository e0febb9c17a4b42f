"""Published results next to those of this campaign: the rows of the table `published`, and its page."""

import math
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from warplog.catalog.contract import Published, status_words
from warplog.catalog.family import Family, Variant
from warplog.core.columns import Cell, Row
from warplog.core.numbers import percent_digits, rate_digits
from warplog.core.text import Table, escape_markdown, markdown_table
from warplog.tables.files import as_rows

_WIDTH = 120
GFLOPS = {"GFLOP/s": 1.0, "TFLOP/s": 1e3}
_OF_MEASURED = ("case", "size", "status", "reason", "remarks", "ratio_to_baseline")


def rows(family: Family, measured: Iterable[Row]) -> list[Row]:
    """Returns one row per row of `measurements` of the family and figure published for it.

    A figure belongs to its own case, or to the headline case if its source does not name one. A measurement for
    which nothing was published has one row without a figure.
    """
    compared: list[Row] = []
    declared = {variant.name: variant for variant in family.variants}
    for row in measured:
        if row["family"] != family.name or row["variant"] not in declared:
            continue
        here = [p for p in declared[row["variant"]].published if _place(p, family) == row["case"]]
        compared += [_row(family, row, figure) for figure in here] or [_row(family, row, None)]
    return compared


def unit(family: Family) -> str:
    """Returns the unit of the family's first published figure; GFLOP/s if it has none."""
    return next((p.unit for v in family.variants for p in v.published), "GFLOP/s")


def ratio(family: Family, figure: Published) -> float:
    """Returns the figure divided by that of the baseline from the same source, GPU and case; NaN without one."""
    for other in family.variant(family.baseline).published if family.baseline else ():
        if (other.source, other.gpu, other.case) == (figure.source, figure.gpu, figure.case):
            return figure.value * GFLOPS[figure.unit] / (other.value * GFLOPS[other.unit])
    return math.nan


def _row(family: Family, row: Row, figure: Published | None) -> Row:
    shown = figure.unit if figure else unit(family)
    gflops = _number(row.get("gflops"))
    cells: dict[str, Cell] = {
        "family": family.name,
        "variant": row["variant"],
        **{name: row.get(name) for name in _OF_MEASURED},
        "value": None if math.isnan(gflops) else gflops / GFLOPS[shown],
        "unit": shown,
        **{name: row.get(name) for name in ("gpu", "gpu_name", "origin", "campaign")},
    }
    if figure is not None:
        share = ratio(family, figure)
        cells |= {
            "published": figure.value,
            "published_case": figure.case,
            "published_gpu": figure.gpu,
            "published_source": figure.source,
            "published_ratio": None if math.isnan(share) else share,
        }
    return cells


def table(family: Family, measured: Sequence[Row], variants: Sequence[Variant]) -> Table:
    """Returns the table of one family: this campaign's speed at the headline case, its ratio to the baseline at every
    timed size, and the published figures.

    `measured` are rows of `measurements` of one GPU; `variants` are the variants to show, in order.
    """
    at = {(str(r["variant"]), str(r["case"])): r for r in measured if r["family"] == family.name}
    cases = [case for case in family.cases if any(key[1] == case for key in at)]
    figures = [p for v in variants for p in v.published if _place(p, family) == family.headline_case]
    sources = list(dict.fromkeys((figure.gpu, figure.source, figure.case) for figure in figures))
    heads = [f"{gpu} ({number})" for number, (gpu, _, _) in enumerate(sources, 1)]
    shown, scale = unit(family), GFLOPS[unit(family)]
    lines = []
    for variant in variants:
        here = at.get((variant.name, family.headline_case), {})
        status, limits = str(here.get("status", "missing")), str(here.get("own_limits") or "")
        cells = [variant.name, speed(_number(here.get("gflops")) / scale, status, limits)]
        ratios = [at.get((variant.name, case), {}).get("ratio_to_baseline") for case in cases]
        cells += [share(_number(value)) for value in ratios]
        printed = {(p.gpu, p.source, p.case): p for p in variant.published}
        cells += [_cell(family, printed.get(source), scale) for source in sources]
        lines.append(tuple(cells))
    titles = ("variant", f"{shown} at {family.headline_case}", *(f"% at {case}" for case in cases), *heads)
    about = (f"% is the speed relative to {family.baseline}, in the same run.",) if family.baseline else ()
    named = (
        f"({n}) {source}{f', at {case}' if case else ''}." for n, (_, source, case) in enumerate(sources, 1)
    )
    return Table(titles, tuple(lines), frozenset(range(1, len(titles))), (*about, *named))


def page(family: Family, measured: Sequence[Row], variants: Sequence[Variant]) -> str:
    """Returns the table and its notes as Markdown."""
    shown = table(family, measured, variants)
    first = next((r for r in measured if r["family"] == family.name), {})
    where = [str(first[name]) for name in ("gpu_name", "campaign") if first.get(name)]
    notes = [f"{', '.join(where)}."] if where else []
    text = escape_markdown(" ".join([*notes, *shown.notes]))
    return "\n".join([*markdown_table(shown), "", *textwrap.wrap(text, _WIDTH)]) + "\n"


def chosen(family: Family, folder: Path) -> tuple[Sequence[Row], tuple[Variant, ...]]:
    """Returns the family's rows of `measurements` in a folder of tables, and the variants in them, in order.

    Raises:
        WarplogError: if a table is missing or not readable.
    """
    from warplog.tables import view

    measured = as_rows(view.load(folder, family.name).measurements)
    names = {row["variant"] for row in measured}
    return measured, tuple(v for v in family.variants if v.name in names)


def speed(value: float, status: str = "ok", own_limits: str = "") -> str:
    """Formats a rate: whole units from 100 on, otherwise three digits; the status if `value` is NaN."""
    if math.isnan(value):
        return status_words(status, own_limits) if status != "ok" else "n/a"
    return rate_digits(value)


def share(value: float) -> str:
    """Formats a ratio in percent with one decimal, or without any from 1000 % on; "n/a" for NaN."""
    return "n/a" if math.isnan(value) else percent_digits(value)


def _cell(family: Family, figure: Published | None, scale: float) -> str:
    if figure is None:
        return ""
    of_baseline = ratio(family, figure)
    percent = "" if math.isnan(of_baseline) else f" ({share(of_baseline)} %)"
    return speed(figure.value * GFLOPS[figure.unit] / scale) + percent


def _place(figure: Published, family: Family) -> str:
    return figure.case or family.headline_case


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan
