"""What moves through which unit of the memory system, in the fastest variant and in the one that it is based on?"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from warplog.core import columns
from warplog.core.columns import Cell, Row
from warplog.figures.shared.labels import FAINT, INK, MUTED, ON_PAPER, gap_note, is_narrow, number
from warplog.figures.shared.memory_boxes import (
    HEIGHT,
    METRICS,
    NOTE,
    WIDTH,
    Arrow,
    Box,
    MemoryChart,
    chart,
    kernel_metrics,
    turned,
)
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.tables.files import ORIGIN_COLUMNS, as_rows
from warplog.tables.view import FigureTables

NEEDS = ("counters",)
TITLE = "Memory chart"
TRAFFIC = {  # what the title compares
    "l1_bytes": ("looks up", "in L1"),
    "l2_bytes": ("looks up", "in L2"),
    "dram_bytes_read": ("reads", "from device memory"),
}
_MANY = 2.0  # times the parent's traffic: from here on it is not stated in percent
LEAST = 1.1  # a smaller difference is not a finding
_BODY_IN, _NARROW_BODY_IN = 2.2, 4.4  # height of a chart
_FILL = "#a6cee3"
_FAR = 60.0  # between boxes: room for the texts of two arrows at different heights


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per variant with its longest kernel's metrics; `place` is 1 for the fastest, 0 for its parent.

    The fastest is that at the profiled case, without the baseline and those without counters; the place of others is
    missing. If it launches the same kernel as its parent, the nearest ancestor with another kernel takes its place.
    Columns of tensor memory are absent if no kernel has a value.
    """
    rows = kernel_metrics(tables)
    timed = tables.ladder(tables.profiled_case)
    rows["parent"], rows["median_us"] = timed["parent"].fillna(""), timed["median_us"]
    counted = (rows["gap"] == "") & rows["l2_bytes"].notna()
    own = rows[counted & ~rows["is_baseline"].astype(bool) & (rows["median_us"] > 0)]
    best = own.sort_values("median_us", kind="stable").head(1)
    is_parent = counted & rows["variant"].isin([_ancestor(rows, str(name)) for name in best["variant"]])
    rows["place"] = np.select([rows["variant"].isin(best["variant"]), is_parent], [1.0, 0.0], np.nan)
    kept = ["family", "variant", "order", "parent", "is_baseline", "case", "kernel", "status", "gap", "place"]
    metrics = [name for name in METRICS if not name.startswith("tensor_memory_") or rows[name].notna().any()]
    return rows[[*kept, "median_us", *metrics, *ORIGIN_COLUMNS]]


def _ancestor(rows: pd.DataFrame, variant: str) -> str:
    """Returns the nearest ancestor with another kernel, or without counters; "" if there is none."""
    by_name = {str(row["variant"]): row for row in as_rows(rows)}
    executed = ["kernel", *(name for name in METRICS if name.startswith("inst_"))]
    own = [by_name[variant][name] for name in executed]
    above = str(by_name[variant]["parent"])
    while above in by_name and all(
        _same(by_name[above][name], count) for name, count in zip(executed, own, strict=True)
    ):
        above = str(by_name[above]["parent"])
    return above


def _same(a: Any, b: Any) -> bool:
    return bool(a == b or (pd.isna(a) and pd.isna(b)))


def charts(data: pd.DataFrame) -> list[MemoryChart]:
    """Returns the charts of the variants that the figure shows, that of the fastest last."""
    shown = _shown(data)
    return [
        chart(str(row["variant"]), _metrics(row), _metrics(above)) for above, row in pairwise([{}, *shown])
    ]


def _shown(data: pd.DataFrame) -> list[dict[str, Cell]]:
    return as_rows(data[data["place"].notna()].sort_values("place"))


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws the chart of the parent above that of the fastest variant; only the latter, from the top, if narrow."""
    first = data.iloc[0]
    title = f"{TITLE}{_finding(_shown(data))} · {first['family']}, case {first['case']}"
    drawn = [turned(chart) for chart in charts(data)[-1:]] if is_narrow() else charts(data)
    full, body = ((HEIGHT, WIDTH), _NARROW_BODY_IN) if is_narrow() else ((WIDTH, HEIGHT), _BODY_IN)
    sizes = [memory.size for memory in drawn] or [full]
    shares = [height / full[1] for _, height in sizes]
    figure = new_figure(title, body * sum(shares), NOTE, look)
    panels = figure.subplots(len(sizes), 1, squeeze=False, height_ratios=shares)[:, 0]
    for axes, size in zip(panels, sizes, strict=True):
        axes.set(xlim=(-2, size[0] + 2), ylim=(size[1] + 4, -26))
        axes.set_axis_off()
    if not drawn:
        gap_note(panels[0], 0, "no variant has a time and counters")
    for axes, memory in zip(panels, drawn, strict=False):
        axes.text(0, -8, memory.title, weight="bold")
        for box in memory.boxes:
            _draw_box(axes, box)
        for arrow in memory.arrows:
            _draw_arrow(axes, arrow)
    return figure


def _finding(shown: Sequence[Row]) -> str:
    """Returns which traffic differs most between the parent and the fastest variant; only names if one is missing."""
    if len(shown) < 2:
        return "".join(f": {row['variant']}" for row in shown)
    parent, own = shown
    pairs = {
        words: (columns.number(own, name), columns.number(parent, name)) for name, words in TRAFFIC.items()
    }
    ratios = {words: best / above for words, (best, above) in pairs.items() if best > 0 and above > 0}
    if not ratios:
        return f": {parent['variant']} and {own['variant']}"
    (verb, where), ratio = max(ratios.items(), key=lambda item: abs(np.log(item[1])))
    if max(ratio, 1 / ratio) < LEAST:
        *others, last = (
            place.split(maxsplit=1)[1] for _, place in ratios
        )  # "device memory"; L1 only if both use it
        places = " and ".join(([", ".join(others)] if others else []) + [last])
        return f": {own['variant']} moves as much as {parent['variant']} in {places}, within 10 %"
    if ratio >= _MANY:
        return f": {own['variant']} {verb} {number(ratio)} times as much {where} as {parent['variant']}"
    percent = f"{100 * abs(ratio - 1):.0f} % {'more' if ratio > 1 else 'less'}"
    return f": {own['variant']} {verb} {percent} {where} than {parent['variant']}"


def _metrics(row: Row) -> dict[str, float]:
    return {name: columns.number(row, name) for name in METRICS if name in row}


def _draw_box(axes: Axes, box: Box) -> None:
    """Draws a unit, filled from the bottom by the share of its throughput."""
    filled = box.height * box.used
    axes.add_patch(Rectangle((box.x, box.y + box.height - filled), box.width, filled, fc=_FILL, ec="none"))
    axes.add_patch(Rectangle((box.x, box.y), box.width, box.height, fc="none", ec=INK, lw=0.8))
    text = "\n".join((box.name, *box.lines))
    axes.text(box.x + box.width / 2, box.y + box.height / 2, text, ha="center", va="center", linespacing=1.2)


def _draw_arrow(axes: Axes, arrow: Arrow) -> None:
    """Draws an arrow with its text above and below, or beside it if it is vertical."""
    (x0, y0), (x1, y1) = arrow.start, arrow.end
    line, ink = (FAINT, MUTED) if arrow.is_idle else (INK, INK)
    shape = {"arrowstyle": "-|>", "color": line, "lw": 0.9, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", arrow.end, arrow.start, arrowprops=shape)
    if x0 == x1:  # the texts of neighbours that point in opposite directions are at different heights
        text, place = (
            "\n".join(filter(None, (arrow.above, arrow.below))),
            (x0, y0 + (0.7 if abs(y1 - y0) > _FAR else 0.5) * (y1 - y0)),
        )
        paper = {**ON_PAPER, "alpha": 0.9}
        axes.annotate(
            text,
            place,
            (3, 0),
            textcoords="offset points",
            va="center",
            color=ink,
            bbox=paper,
            zorder=4,  # above the next arrow
        )
        return
    middle = (x0 + x1) / 2, y0
    axes.annotate(
        arrow.above, middle, (0, 2), textcoords="offset points", ha="center", va="bottom", color=ink
    )
    axes.annotate(
        arrow.below, middle, (0, -2), textcoords="offset points", ha="center", va="top", color=MUTED
    )
