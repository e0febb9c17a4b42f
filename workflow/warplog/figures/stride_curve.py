"""What does the distance between the elements of neighbouring lanes cost, and which memory pays for it?"""

import json

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from warplog.core.columns import text
from warplog.figures.shared.labels import (
    INK,
    SideLabel,
    drawn_as,
    is_narrow,
    number,
    plot_width_in,
    side_labels,
    tick,
)
from warplog.figures.shared.style import Look, new_figure, ordered_style, styled
from warplog.tables import regimes
from warplog.tables.files import ORIGIN_COLUMNS, as_rows
from warplog.tables.view import FigureTables

NEEDS = ("listed",)
TITLE = "Bandwidth by stride"
NOTE = "bytes of the algorithm over the median time {regime}, a line per case"
BELOW = "; below: bytes that DRAM and L2 move per byte of the algorithm, by ncu at {case}"
TRAFFIC = {"dram_per_byte": "DRAM", "l2_per_byte": "L2"}
_LEAST = 3  # strides; fewer show no curve


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per stride and timed case, of the variants with a parameter STRIDE and of their parent, stride 1.

    At the profiled case, `dram_per_byte` and `l2_per_byte` are what ncu counted, over the bytes of the algorithm. `gap`
    says why there is no time.
    """
    strides = _strides(tables.variants)
    cases = tables.measurements[["case", "size"]].drop_duplicates("case").sort_values("size")
    pieces = [tables.ladder(case).assign(size=size) for case, size in cases.itertuples(index=False)]
    rows = pd.concat(pieces)
    rows["stride"] = rows["variant"].map(strides)
    rows = rows[rows["stride"].notna()].sort_values(["size", "stride"]).reset_index(drop=True)
    rows.loc[(rows["gap"] == "") & rows["median_us"].isna(), "gap"] = "n/a"
    measured = ["median_us", "gbytes_per_s"]
    rows[measured] = rows[measured].where(rows["gap"] == "")
    moved = tables.counters(["dram_bytes", "l2_bytes"]).set_index("variant")
    profiled = rows["case"] == tables.profiled_case
    useful = 1e3 * rows["gbytes_per_s"] * rows["median_us"]
    for column in TRAFFIC:
        counted = rows["variant"].map(moved[column.replace("_per_byte", "_bytes")])
        rows[column] = (counted / useful).where(profiled)
    rows["profiled_case"] = tables.profiled_case
    rows["regime"] = regimes.where_timed(as_rows(rows))
    if rows.loc[rows["gap"] == "", "stride"].nunique() < _LEAST:
        rows = rows.iloc[:0]
    kept = ["family", "variant", "order", "is_baseline", "stride", "case", "size", "status", "gap", *measured]
    return rows[[*kept, *TRAFFIC, "profiled_case", "regime", *ORIGIN_COLUMNS]]


def _strides(variants: pd.DataFrame) -> dict[str, float]:
    """Returns the stride of each variant with one, and 1 for the parents of these."""
    own = {
        str(row["variant"]): float(json.loads(text(row, "parameters") or "{}").get("STRIDE", np.nan))
        for row in as_rows(variants)
    }
    parents = {text(row, "parent"): 1.0 for row in as_rows(variants) if np.isfinite(own[str(row["variant"])])}
    return parents | {name: stride for name, stride in own.items() if np.isfinite(stride)}


def _finding(data: pd.DataFrame) -> str:
    """Returns the slowest stride at the profiled case, and how much slower than stride 1 it is."""
    case = str(data["profiled_case"].iloc[0])
    times = data[data["case"] == case].dropna(subset=["median_us"]).set_index("stride")["median_us"]
    if 1.0 not in times.index:
        return TITLE
    factor = float(times.max() / times[1.0])
    return f"{TITLE}: up to {number(factor)} times slower, with stride {times.idxmax():.0f} at {case}"


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws a line per case over the stride, and below it the traffic of DRAM and L2 at the profiled case."""
    first = data.iloc[0]
    has_traffic = bool(data[list(TRAFFIC)].notna().any(axis=None))
    lines_in, traffic_in = 2.4 if is_narrow() else 2.8, 1.5 * has_traffic
    note = NOTE.format(regime=first["regime"]) + BELOW.format(case=first["profiled_case"]) * has_traffic
    gaps = data[data["gap"] != ""].drop_duplicates("variant")
    note += "".join(f"; {v}: {gap}" for v, gap in zip(gaps["variant"], gaps["gap"], strict=True))
    title = f"{_finding(data)} · {first['family']}"
    figure = new_figure(title, lines_in + traffic_in, note, look, timed=True)
    heights = [lines_in, traffic_in][: 1 + has_traffic]
    panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    if has_traffic:
        _traffic(panels[1], data[data["case"] == first["profiled_case"]])
    labels = _lines(panels[0], data)
    panels[-1].set_xlabel("stride (elements, log scale)")
    side_labels(panels[0], labels, lines_in - 0.4, plot_width_in(labels))
    return figure


def _lines(axes: Axes, data: pd.DataFrame) -> list[SideLabel]:
    """Draws a line per case, smaller ones lighter, and returns their labels."""
    labels = []
    cases = list(dict.fromkeys(data["case"]))
    for place, case in enumerate(cases):
        own, style = (
            data[data["case"] == case].dropna(subset=["gbytes_per_s"]),
            ordered_style(place, len(cases)),
        )
        axes.plot(own["stride"], own["gbytes_per_s"], **drawn_as(style.edge, style.marker, style.dashes))
        x, y = own[["stride", "gbytes_per_s"]].iloc[-1] if len(own) else (np.nan, np.nan)
        labels.append(SideLabel(x, y, str(case), style.edge, style.marker, style.dashes))
    _log_axes(axes, data)
    axes.set_ylabel("useful GB/s")
    return labels


def _traffic(axes: Axes, own: pd.DataFrame) -> None:
    """Draws the bytes that DRAM and L2 move per byte of the algorithm."""
    for (column, name), dashes in zip(TRAFFIC.items(), ((), (5, 1.5)), strict=True):
        known = own.dropna(subset=[column])
        axes.plot(known["stride"], known[column], label=name, **drawn_as(INK, "o", dashes))
    _log_axes(axes, own)
    axes.set_ylabel("moved bytes\nper useful one")
    axes.legend(loc="upper left", frameon=False, ncols=2, handlelength=2.2, borderpad=0.1)
    axes.set_ylim(top=3 * axes.get_ylim()[1])  # room for the legend


def _log_axes(axes: Axes, data: pd.DataFrame) -> None:
    strides = sorted(data["stride"].unique())
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator(strides[:: 2 if is_narrow() else 1]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda stride, _: f"{stride:.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y")
