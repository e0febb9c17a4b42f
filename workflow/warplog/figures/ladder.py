"""How fast is each variant relative to the baseline, and how much did each step gain?"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from warplog.analysis import verdicts
from warplog.core import columns
from warplog.core.numbers import rate_unit
from warplog.figures.shared.labels import (
    INK,
    ON_PAPER,
    bar_rows,
    fit,
    gap_note,
    is_narrow,
    number,
    row_in,
    text_column,
    text_width_in,
    width_in,
)
from warplog.figures.shared.style import Look, new_figure, styled, variant_bars
from warplog.tables import regimes
from warplog.tables.files import ORIGIN_COLUMNS, as_rows
from warplog.tables.view import FigureTables

NEEDS = ()
TITLE = "Speed relative to the baseline"
NOTE = (
    "medians {regime}; whiskers: {interval}; gain: time of the parent over own time, ≈ if tied within noise"
)
LONG_RUN = "; outlined: {regime}, limited by {limits}"


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per variant at the headline case: percent of the reference with its interval, rate, gain.

    The reference is the baseline, or the fastest variant if no ratio to a baseline is known. percent_long is the speed
    in a long run, in percent of the reference at rest, if a limit of the board makes it slower; percent_q1 and
    percent_q3 are the ends of the spread between processes, or the quartiles of a single process.
    """
    rows = tables.ladder(tables.case)
    good = rows["status"] == "ok"
    median = rows["median_us"].where(good)
    baseline = rows.loc[rows["is_baseline"].astype(bool) & median.notna(), "variant"]
    if len(baseline) and rows.loc[good, "ratio_to_baseline"].notna().any():
        reference = str(baseline.iloc[0])
        ratios = [rows[c].where(good) for c in ("ratio_to_baseline", "ratio_q1", "ratio_q3")]
    else:
        reference = (
            f"the fastest, {rows['variant'].iloc[int(median.argmin())]}" if median.notna().any() else ""
        )
        lows, highs = zip(*map(regimes.interval_us, as_rows(rows)), strict=True)
        ratios = [median.min() / times for times in (median, pd.Series(highs), pd.Series(lows))]
    parents = rows["parent"].map(dict(zip(rows["variant"], median, strict=True)))
    quantity = tables.quantity()
    rows["percent"] = 100 * ratios[0]
    rows["percent_q1"] = 100 * np.fmin(ratios[1], ratios[2])
    rows["percent_q3"] = 100 * np.fmax(ratios[1], ratios[2])
    rows["reference"] = reference
    rows["reference_note"] = _note_on(tables, reference)
    rows["rate"] = rows[quantity.column].where(good)
    rows["rate_unit"] = quantity.unit
    rows["gain_over_parent"] = parents / median
    records = {str(row["variant"]): row for row in as_rows(rows)}
    rows["tied"] = [
        bool(gain > 0) and verdicts.tied(row, records[str(row["parent"])])
        for row, gain in zip(records.values(), rows["gain_over_parent"], strict=True)
    ]
    long_runs = map(regimes.long_run, records.values())
    runs = [run if run and run.limited_by else None for run in long_runs]  # one may be slower without a limit
    rows["percent_long"] = [
        p * run.factor if run else np.nan for p, run in zip(rows["percent"], runs, strict=True)
    ]
    rows["long_regime"] = [run.regime if run else "" for run in runs]
    rows["limited_by"] = [run.limited_by if run else "" for run in runs]
    rows["regime"] = regimes.where_timed(records.values())
    rows["interval"] = regimes.interval_words(records.values())
    rows.loc[(rows["gap"] == "") & rows["percent"].isna(), "gap"] = "n/a"
    kept = ["family", "variant", "order", "parent", "is_baseline", "case", "status", "gap", "median_us"]
    kept += [
        "percent",
        "percent_q1",
        "percent_q3",
        "reference",
        "reference_note",
        "rate",
        "rate_unit",
        "gain_over_parent",
        "tied",
    ]
    kept += ["percent_long", "long_regime", "limited_by", "regime", "interval"]
    return rows[[*kept, *ORIGIN_COLUMNS]]


def _note_on(tables: FigureTables, variant: str) -> str:
    """Returns what a ratio to the variant must say; "" for nothing, and for tables of an earlier version."""
    rows = as_rows(tables.variants[tables.variants["variant"] == variant])
    return columns.text(rows[0], "note") if rows else ""


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws horizontal bars in ladder order with whiskers and rates, long runs inside them, and gains beside them."""
    first, reference = data.iloc[0], str(data["reference"].iloc[0])
    figure = new_figure(_title(data), 0.62 + row_in() * len(data), _note(data), look, timed=True)
    axes = figure.add_subplot()
    variant_bars(axes, data, "percent", 0.72, look)
    bar_rows(axes, data["variant"], data["is_baseline"])
    columns_in = _columns(axes, data)
    names_in = max(text_width_in(label.get_text()) for label in axes.get_yticklabels())
    axes.set_xlim(0, _bar_ends(axes, data, width_in() - names_in - columns_in - 0.3))
    axes.set(xlabel=f"speed (% of {reference or 'the baseline'} {first['regime']})")
    axes.axvline(100, color=INK, lw=0.9, ls=(0, (4, 2)), zorder=0.9)
    return figure


def _title(data: pd.DataFrame) -> str:
    """Returns the finding: the fastest variant besides the baseline and its speed."""
    where = f"{data['family'].iloc[0]}, case {data['case'].iloc[0]}"
    own = as_rows(data[data["percent"].notna() & ~data["is_baseline"].astype(bool)])
    if not own:
        return f"{TITLE} · {where}"
    best, reference = max(own, key=lambda row: columns.number(row, "percent")), str(data["reference"].iloc[0])
    if reference.startswith("the fastest"):
        return f"{best['variant']} is the fastest · {where}"
    reference += f" ({best['reference_note']})" if best["reference_note"] else ""
    return f"{best['variant']} reaches {best['percent']:.1f} % of {reference} · {where}"


def _note(data: pd.DataFrame) -> str:
    first = data.iloc[0]
    note = NOTE.format(regime=first["regime"], interval=first["interval"])
    slower = data[data["percent_long"].notna()]
    if slower.empty:
        return note
    kinds = (" or ".join(sorted(set(slower[column]))) for column in ("long_regime", "limited_by"))
    return note + LONG_RUN.format(**dict(zip(("regime", "limits"), kinds, strict=True)))


def _columns(axes: Axes, data: pd.DataFrame) -> float:
    """Writes percent, gain and parent in columns beside the bars; returns their width in inches."""
    unit, factor = rate_unit(str(data["rate_unit"].iloc[0]), data["rate"])
    rates = [number(rate * factor) if np.isfinite(rate) else "" for rate in data["rate"]]
    percents = [f"{p:.1f}" if np.isfinite(p) else "" for p in data["percent"]]
    pairs = zip(data["gain_over_parent"], data["tied"], strict=True)
    gains = [f"≈{_times(g)}" if same else _times(g) for g, same in pairs]
    parents = [fit(p, 1.25) if g else "" for p, g in zip(data["parent"], gains, strict=True)]
    first = (unit, rates) if is_narrow() else ("%", percents)
    end = text_column(axes, *first, 0.08, "right")
    end = text_column(axes, "gain", gains, end, "right") if any(gains) else end
    return text_column(axes, "over parent", parents, end) if any(gains) and not is_narrow() else end


def _times(gain: float) -> str:
    if not np.isfinite(gain):
        return ""
    return f"×{gain:.2f}" if gain < 9.995 else f"×{number(gain)}"


def _bar_ends(axes: Axes, data: pd.DataFrame, width: float) -> float:
    """Draws whiskers and the rate at each bar's end; returns the x limit that leaves room for the rates."""
    limits = [102.0]
    unit, factor = rate_unit(str(data["rate_unit"].iloc[0]), data["rate"])
    covering = {**ON_PAPER, "alpha": 1.0}  # otherwise the reference line would cross the number
    spread = np.nan_to_num([data["percent"] - data["percent_q1"], data["percent_q3"] - data["percent"]]).clip(
        0
    )
    _whiskers(axes, data["percent"].where(data["gap"] == ""), spread)
    for row, bar in enumerate(as_rows(data)):
        if gap := columns.text(bar, "gap"):
            gap_note(axes, row, gap)
            continue
        if np.isfinite(percent := columns.number(bar, "percent_long")):
            axes.barh(row, percent, 0.42, fc=(1, 1, 1, 0.55), ec=INK, lw=0.8, ls=(0, (2, 1)))
        end = columns.number(bar, "percent") + float(spread[1, row])
        text = f"{number(columns.number(bar, 'rate') * factor)} {unit}"
        if is_narrow():
            limits.append(1.02 * end)  # the rates stand in a column
            continue
        axes.annotate(text, (end, row), (4, 0), textcoords="offset points", va="center", bbox=covering)
        limits.append(end / max(0.3, 1 - (text_width_in(text) + 0.15) / width))
    return max(limits)


def _whiskers(axes: Axes, percent: pd.Series, spread: "np.ndarray[Any, np.dtype[np.float64]]") -> None:
    """Draws the whiskers of all bars, with a light edge on dark bars."""
    for colour, lw in (("white", 1.8), (INK, 0.9)):
        axes.errorbar(
            percent,
            range(len(percent)),
            xerr=spread,
            fmt="none",
            ecolor=colour,
            elinewidth=lw,
            capsize=2.2,
            capthick=lw,
        )
