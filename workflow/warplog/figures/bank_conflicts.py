"""How many shared-memory wavefronts does each variant lose to bank conflicts?"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from warplog.core.numbers import short_number as counted
from warplog.figures.shared.labels import (
    INK,
    bar_rows,
    gap_notes,
    is_narrow,
    legend_above,
    number,
    row_in,
    text_column,
    tick,
)
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.tables.files import ORIGIN_COLUMNS
from warplog.tables.view import FigureTables

NEEDS = ("counters", "shared_memory")
TITLE = "Shared-memory bank conflicts"
NOTE = (
    "wavefronts: passes through shared memory, calculated by ncu from the addresses (longest kernel of the "
    "case); ways: wavefronts per ideal wavefront"
)
NOT_COUNTED = "; not counted: reads by wgmma, which no counter covers; the rest has no conflicts"
COUNTERS = [
    "shared_wavefronts",
    "shared_wavefronts_ideal",
    "shared_wavefronts_excess",
    "shared_conflict_ways",
    "inst_hgmma",
]
IDEAL, EXCESS = "#a6cee3", "#d55e00"  # they also differ in lightness; the excess is hatched


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per variant: wavefronts (all, ideal, excess) and ways (wavefronts over ideal ones).

    A kernel without shared-memory accesses has zero wavefronts, NaN ways and a `gap` that says so. `partly` marks a
    kernel whose tensor cores read shared memory by themselves (wgmma): the counters do not cover those reads.
    """
    rows = tables.counters(COUNTERS)
    total, ideal = rows["shared_wavefronts"], rows["shared_wavefronts_ideal"]
    rows["shared_wavefronts_excess"] = rows["shared_wavefronts_excess"].fillna(total - ideal)
    rows["shared_conflict_ways"] = (total / ideal.where(ideal > 0)).fillna(rows["shared_conflict_ways"])
    known = ideal.notna() & rows["shared_wavefronts_excess"].notna()
    unused = known & (ideal == 0) & (rows["shared_wavefronts_excess"] == 0)
    fallback = np.where(unused, "no shared-memory access", np.where(known, "", "n/a"))
    rows["gap"] = np.where(rows["gap"] != "", rows["gap"], fallback)
    rows["excess_pct"] = 100 * rows["shared_wavefronts_excess"] / total.where(total > 0)
    rows["partly"] = rows["inst_hgmma"] > 0
    kept = ["family", "variant", "order", "is_baseline", "case", "kernel", "status", "gap", *COUNTERS]
    return rows[[*kept, "excess_pct", "partly", *ORIGIN_COLUMNS]]


def _finding(counted: pd.DataFrame, of: int) -> str:
    """Returns the variant with the most conflicts; the title without a finding if no variant's are known.

    It says how many variants are counted, if not all of the `of` that use shared memory.
    """
    known = counted[counted["shared_conflict_ways"].notna()]
    if known.empty:
        return TITLE
    ways = f"{known['shared_conflict_ways'].max():.2f}"
    worst = known["variant"].iloc[int(known["shared_conflict_ways"].argmax())]
    which = f" ({len(known)} of {of} variants counted)" if len(known) < of else ""
    return (
        f"{TITLE}: none{which}"
        if ways == "1.00"
        else f"Bank conflicts: at most {ways}-way, in {worst}{which}"
    )


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws the shares of ideal and excess wavefronts as stacked bars, and counts beside them."""
    first, good = data.iloc[0], data["gap"] == ""
    totals = data.loc[good, "shared_wavefronts"]
    hidden = good & data["partly"] & ~(data["excess_pct"] > 0)
    title = f"{_finding(data[good & ~hidden], int(good.sum()))} · {first['family']}, case {first['case']}"
    figure = new_figure(title, 0.84 + row_in() * len(data), NOTE + NOT_COUNTED * bool(hidden.any()), look)
    axes = figure.add_subplot()
    bar_rows(axes, data["variant"], data["is_baseline"])
    scale = 100 / data["shared_wavefronts"]
    drawn = good & ~hidden
    rows = np.flatnonzero(drawn)
    ideal, excess = ((data[f"shared_wavefronts_{part}"] * scale)[drawn] for part in ("ideal", "excess"))
    axes.barh(rows, ideal, 0.72, color=IDEAL, ec=INK, lw=0.5)
    some = excess.to_numpy() > 0
    axes.barh(rows[some], excess[some], 0.72, left=ideal[some], color=EXCESS, hatch="////", ec=INK, lw=0.5)
    axes.set_xlabel("share of the shared-memory wavefronts (%)")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    axes.set_xlim(0, 100)
    if totals.empty:
        axes.set_xticks([])
    gap_notes(axes, data["gap"].mask(hidden, "not counted: reads by wgmma"))
    if good.any():
        _columns(axes, data, hidden)
        legend_above(
            axes,
            [
                Patch(fc=IDEAL, ec=INK, lw=0.5, label="ideal: required without conflicts"),
                Patch(fc=EXCESS, ec=INK, lw=0.5, hatch="////", label="excess: caused by bank conflicts"),
            ],
        )
    return figure


def _columns(axes: Axes, data: pd.DataFrame, hidden: pd.Series) -> None:
    """Writes wavefronts, excess and ways in columns; the counted wavefronts only where wgmma reads are `hidden`."""
    good = data["gap"] == ""
    whole = good & ~hidden

    def cells(column: str, shown: pd.Series, formatted: Callable[[float], str]) -> list[str]:
        return [formatted(value) if ok else "" for value, ok in zip(data[column], shown, strict=True)]

    ways = cells("shared_conflict_ways", whole, lambda ways: f"{ways:.2f}-way")
    end = text_column(axes, "ways", ways, 0.08, "right")
    excess = cells("excess_pct", whole, lambda pct: f"{number(pct)} %")
    end = text_column(axes, "excess", excess, end, "right")
    if not is_narrow():
        text_column(axes, "wavefronts", cells("shared_wavefronts", good, counted), end, "right")
