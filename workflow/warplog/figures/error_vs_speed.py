"""What does a narrower type gain in speed, and what does it cost in exactness?"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from warplog.core import columns
from warplog.core.numbers import rate_unit
from warplog.core.text import listed
from warplog.figures.shared.labels import (
    ON_PAPER,
    drawn_as,
    fit,
    is_narrow,
    legend_above,
    line_in,
    name_in,
    number,
    text_width_in,
    tick,
    width_in,
)
from warplog.figures.shared.placement import Points, along, sampled
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.tables import regimes
from warplog.tables.files import ORIGIN_COLUMNS, as_rows
from warplog.tables.view import FigureTables, words

NEEDS = ("listed",)
TITLE = "Error and speed by type"
NOTE = (
    "medians {regime}; error: largest of all results, relative to the scale in the family's reference.py; lines join"
    " the variants of a type; faster is to the right, more exact is below"
)
_FRAME_IN = (0.75, 0.8)  # of the figure around the axes, approximately
_MARK_IN = 0.025  # from the middle of a mark to its edge; a name may stand right above its own


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns a row per variant and type: the timed cases of the headline case's size, named <size>-<type>.

    `gap` says why there is no point. There are no rows without two types whose speed and error are known.
    """
    timed = tables.measurements[["case", "size"]].drop_duplicates("case")
    size = timed.loc[timed["case"] == tables.case, "size"]
    cases = list(timed.loc[timed["size"].isin(size), "case"])
    pieces = [tables.ladder(case).assign(type=case.rpartition("-")[2], size=size.iloc[0]) for case in cases]
    rows = pd.concat(
        pieces or [tables.ladder(tables.case).iloc[:0].assign(type="", size=0)], ignore_index=True
    )
    numbers = ["gflops", "median_us", "max_error_over_scale", "pj_per_flop"]
    rows = rows.assign(**{name: np.nan for name in numbers if name not in rows})
    rows[numbers] = rows[numbers].astype(float).where(rows["gap"] == "", np.nan)
    known = (rows["gflops"] > 0) & (rows["max_error_over_scale"] > 0)
    rows.loc[(rows["gap"] == "") & ~known, "gap"] = "n/a"
    rows["is_headline"] = rows["case"] == tables.case
    rows["regime"] = regimes.where_timed(as_rows(rows))
    kept = [
        "family",
        "variant",
        "order",
        "is_baseline",
        "case",
        "type",
        "size",
        "is_headline",
        "status",
        "gap",
    ]
    rows = rows if rows.loc[known, "type"].nunique() > 1 else rows.iloc[:0]
    return rows[[*kept, "own_limits", *numbers, "regime", *ORIGIN_COLUMNS]]


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws a mark per type and variant on logarithmic axes, joined and named by type."""
    good = data[data["gap"] == ""]
    unit, factor = rate_unit("GFLOP/s", good["gflops"])
    good = good.assign(rate=good["gflops"] * factor)
    body = 3.0 if is_narrow() else 4.0
    figure = new_figure(f"{_finding(good)} · {_where(data)}", body, _note(data), look, timed=True)
    axes = figure.add_subplot()
    axes.set(
        xscale="log", yscale="log", xlabel=f"speed ({unit}, log scale)", ylabel="largest error (log scale)"
    )
    axes.set_xlim(good["rate"].min() / 1.6, good["rate"].max() * 1.6)
    axes.set_ylim(good["max_error_over_scale"].min() / 2.5, good["max_error_over_scale"].max() * 4)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3) if is_narrow() else (1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda rate, _: tick(rate)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda error, _: _power_of_ten(error)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.grid(axis="both")
    for _, own in good.groupby("type", sort=False):
        path = own.sort_values(["max_error_over_scale", "rate"])
        axes.plot(path["rate"], path["max_error_over_scale"], color="#b0b0b0", lw=0.9, zorder=1.5)
    handles = []
    for name, own in good.groupby("variant", sort=False):
        style = look.style(str(name))
        shown: dict[str, Any] = drawn_as(style.edge, style.marker, None)
        on_top = 3.5 if own["is_baseline"].iloc[0] else 3.0  # its star leaves most of another mark visible
        axes.plot(own["rate"], own["max_error_over_scale"], zorder=on_top, **shown)
        handles.append(Line2D([], [], label=fit(str(name), name_in()), **shown))
    legend_above(axes, handles)
    _name_types(axes, good, (width_in() - _FRAME_IN[0], body - _FRAME_IN[1]))
    return figure


def _name_types(axes: Axes, good: pd.DataFrame, size: tuple[float, float]) -> None:
    """Writes each type above its line, where it covers neither marks nor other names; `size` of the axes in inches."""
    ends = [np.log(limits) for limits in (axes.get_xlim(), axes.get_ylim())]

    def place(row: dict[str, Any] | pd.Series) -> Points:
        at = np.log([row["rate"], row["max_error_over_scale"]])
        return np.array(
            [(x - low) / (high - low) * s for x, (low, high), s in zip(at, ends, size, strict=True)]
        )

    marks = [place(row) for row in as_rows(good)]
    edges = np.array([(0, 0), (0, _MARK_IN), (0, -_MARK_IN), (_MARK_IN, 0), (-_MARK_IN, 0)])
    obstacles = np.vstack([mark + edges for mark in marks])
    for name, own in good.groupby("type", sort=False):
        points = np.array([place(row) for row in as_rows(own)])
        text = text_width_in(str(name))
        top, left, right = points[:, 1].max(), points[:, 0].min() - text, points[:, 0].max() + text / 2
        start, end = (max(0.0, left), top), (min(size[0], right), top)
        corner, covered = along(start, end, (text, 0.8 * line_in()), obstacles, size, late=True)
        obstacles = np.vstack([obstacles, covered, sampled(points[0], points[-1])])
        at = corner[0] / size[0], corner[1] / size[1]
        axes.annotate(
            str(name),
            at,
            (0, 5),
            xycoords="axes fraction",
            textcoords="offset points",
            va="bottom",
            bbox=ON_PAPER,
        )


def _power_of_ten(value: float) -> str:
    return "10" + f"{round(np.log10(value))}".translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _where(data: pd.DataFrame) -> str:
    return f"{data['family'].iloc[0]}, size {data['size'].iloc[0]:.0f}"


def _finding(good: pd.DataFrame) -> str:
    """Returns what the fastest type gains and costs, compared with that of the headline case."""
    fastest = good.sort_values("rate", ascending=False)
    usual = as_rows(fastest[fastest["is_headline"]])[:1]
    best = as_rows(fastest)[0]
    if not usual or best["type"] == usual[0]["type"]:
        return TITLE
    faster, worse = (
        columns.number(best, c) / columns.number(usual[0], c) for c in ("rate", "max_error_over_scale")
    )
    cost = f"{number(worse)} times the error" if worse >= 1 else f"1/{number(1 / worse)} of the error"
    return f"{best['type']} is {number(faster)} times as fast as {usual[0]['type']}, with {cost}"


def _note(data: pd.DataFrame) -> str:
    """Returns how to read the figure, and which points failed."""
    note = NOTE.format(regime=data.iloc[0]["regime"])
    failed = data[(data["gap"] != "") & (data["status"] != "unsupported")]
    for name, own in failed.groupby("variant", sort=False):
        whys = sorted(
            {
                words(row["status"], row["own_limits"]) if row["status"] != "ok" else "n/a"
                for row in as_rows(own)
            }
        )
        tried = data[(data["variant"] == name) & (data["status"] != "unsupported")]
        which = "" if len(own) == len(tried) else f" in {listed(list(own['type']))}"
        note += f"; {fit(str(name), name_in())}{which}: {', '.join(whys)}"
    return note
