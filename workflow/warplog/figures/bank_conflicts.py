"""How many shared-memory wavefronts does each variant lose to bank conflicts?"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from warplog.core.numbers import short_number as counted
from warplog.core.text import listed
from warplog.figures.shared.labels import (
    INK,
    bar_rows,
    cells,
    gap_notes,
    is_narrow,
    legend_above,
    number,
    row_in,
    text_column,
)
from warplog.figures.shared.style import MOST_NAMED, Look, new_figure, styled
from warplog.tables.files import ORIGIN_COLUMNS
from warplog.tables.view import FigureTables

NEEDS = ("counters", "shared_memory")
TITLE = "Shared-memory bank conflicts"
NOTE = (
    "wavefronts: passes through shared memory, calculated by ncu from the addresses, no more than L1 counted "
    "(longest kernel of the case); ways: wavefronts per ideal wavefront"
)
TRACED = (
    "wavefronts: passes through shared memory, by the traced addresses of one launch, not by counters; "
    "ways: wavefronts per ideal wavefront"
)
NOT_COUNTED = "; not drawn: {variants}, whose shared memory is read by wgmma, which no counter covers"
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

    There are no rows if no variant has a conflict. A kernel without shared-memory accesses has zero wavefronts, NaN
    ways and a `gap` that says so. `partly` marks a kernel whose tensor cores read shared memory by themselves (wgmma):
    no counter covers those reads, so it is not drawn without other conflicts. Without any counters, the wavefronts are
    those of the traced launches (`traced`).
    """
    rows = tables.counters(COUNTERS)
    rows["traced"] = bool(rows[COUNTERS].isna().all(axis=None)) and bool(tables.traced_case)
    if rows["traced"].any():
        rows = _traced(rows, tables)
    total, ideal = rows["shared_wavefronts"], rows["shared_wavefronts_ideal"]
    rows["shared_wavefronts_excess"] = rows["shared_wavefronts_excess"].fillna(total - ideal)
    rows["shared_conflict_ways"] = (total / ideal.where(ideal > 0)).fillna(rows["shared_conflict_ways"])
    counted = ideal.notna() & rows["shared_wavefronts_excess"].notna()
    unused = counted & (ideal == 0) & (rows["shared_wavefronts_excess"] == 0)
    fallback = np.where(unused, "no shared-memory access", np.where(counted, "", "n/a"))
    rows["gap"] = np.where(rows["gap"] != "", rows["gap"], fallback)
    rows["excess_pct"] = 100 * rows["shared_wavefronts_excess"] / total.where(total > 0)
    rows["partly"] = rows["inst_hgmma"] > 0
    kept = ["family", "variant", "order", "is_baseline", "case", "kernel", "status", "gap", *COUNTERS]
    rows = rows[[*kept, "excess_pct", "partly", "traced", *ORIGIN_COLUMNS]]
    return rows if (rows["excess_pct"] > 0).any() else rows.iloc[:0]


def _traced(rows: pd.DataFrame, tables: FigureTables) -> pd.DataFrame:
    """Returns the rows with the wavefronts of the traced launches in place of counters."""
    traced = tables.traced[(tables.traced["case"] == tables.traced_case) & (tables.traced["status"] == "ok")]
    found = traced.set_index("variant").reindex(rows["variant"]).reset_index()
    lines = tables.access_lines
    shared = {name: found[name] for name in ("shared_wavefronts", "shared_wavefronts_ideal")}
    is_traced = found["status"].notna()
    elsewhere = tables.traced.loc[tables.traced["status"] == "ok", "variant"]
    missing = np.where(rows["variant"].isin(elsewhere), "traced at another case", "not traced")
    return rows.assign(
        **shared,
        inst_hgmma=rows["variant"].isin(lines.loc[lines["kind"] == "wgmma", "variant"]).astype(float),
        case=tables.traced_case,
        gap=rows["gap"].where(rows["status"] != "ok", missing).where(~is_traced, ""),
    )


def _finding(counted: pd.DataFrame, users: int) -> str:
    """Returns the variant with the most conflicts; the title without a finding if no variant's are known.

    It says how many variants are counted, if not all of the `users` that use shared memory.
    """
    measured = counted[counted["shared_conflict_ways"].notna()]
    if measured.empty:
        return TITLE
    ways = f"{measured['shared_conflict_ways'].max():.2f}"
    worst = measured["variant"].iloc[int(measured["shared_conflict_ways"].argmax())]
    which = f" ({len(measured)} of {users} variants counted)" if len(measured) < users else ""
    return (
        f"{TITLE}: none{which}"
        if ways == "1.00"
        else f"{TITLE}: most in {worst}, {ways}-way on average{which}"
    )


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws the shares of ideal and excess wavefronts as stacked bars, and counts beside them."""
    hidden = (data["gap"] == "") & data["partly"] & ~(data["excess_pct"] > 0)
    using, left_out = int((data["gap"] == "").sum()), list(data.loc[hidden, "variant"])
    named = listed(left_out) if len(left_out) <= MOST_NAMED else f"{len(left_out)} variants"
    data = data[~hidden].reset_index(drop=True)
    first, good = data.iloc[0], data["gap"] == ""
    title = f"{_finding(data[good], using)} · {first['family']}, case {first['case']}"
    title += ", traced" if first["traced"] else ""
    note = (TRACED if first["traced"] else NOTE) + (NOT_COUNTED.format(variants=named) if left_out else "")
    figure = new_figure(title, 0.84 + row_in() * len(data), note, look)
    axes = figure.add_subplot()
    bar_rows(axes, data["variant"], data["is_baseline"])
    scale = 100 / data["shared_wavefronts"]
    ideal, excess = (data[f"shared_wavefronts_{part}"] * scale for part in ("ideal", "excess"))
    axes.barh(data.index[good], ideal[good], 0.72, color=IDEAL, ec=INK, lw=0.5)
    some = good & (excess > 0)
    axes.barh(
        data.index[some], excess[some], 0.72, left=ideal[some], color=EXCESS, hatch="////", ec=INK, lw=0.5
    )
    axes.set_xlabel("share of the shared-memory wavefronts (%)")
    axes.set_xlim(0, 100)
    gap_notes(axes, data["gap"])
    end = text_column(axes, "ways", cells(data, "shared_conflict_ways", "{:.2f}-way".format), 0.08, "right")
    end = text_column(axes, "excess", cells(data, "excess_pct", lambda v: f"{number(v)} %"), end, "right")
    if not is_narrow():
        text_column(axes, "wavefronts", cells(data, "shared_wavefronts", counted), end, "right")
    legend_above(
        axes,
        [
            Patch(fc=IDEAL, ec=INK, lw=0.5, label="ideal: required without conflicts"),
            Patch(fc=EXCESS, ec=INK, lw=0.5, hatch="////", label="excess: caused by bank conflicts"),
        ],
    )
    return figure
