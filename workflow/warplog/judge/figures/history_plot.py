"""Draw the history of a family: one small panel per variant with its median time per campaign and its changes."""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from warplog.catalog.family import Family
from warplog.core import columns
from warplog.core.columns import Row
from warplog.core.csv_text import csv_of_table
from warplog.core.files import write_text
from warplog.figures.shared import style
from warplog.figures.shared.labels import INK, MUTED, ON_PAPER, fit, number
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.judge.figures.comparison_plot import STYLES
from warplog.tables.files import as_rows
from warplog.tables.view import gap_text

TITLE = "Headline time over the campaigns"
NOTE = (
    "points: median time at rest; lines: smallest to largest median of a process (quartiles of the samples if"
    " there was only one); triangles: FASTER (down) or SLOWER (up) than the previous level,"
    " as judged by `warplog compare`; dashed: GPU, driver or clocks differ; each panel has its own axis"
)
PANEL_IN, PANEL_COLUMNS = 1.15, 2
MOST_LABELLED, MOST_NAMED = 6, 12  # campaigns
_LEAST_SPAN = 0.02  # an axis spans at least 2 %, so that noise does not look like a change


def write(data: pd.DataFrame, family: Family, folder: Path) -> None:
    """Writes the table of history.collect_all as CSV, and draws it as PNG and SVG."""
    write_text(folder / f"{family.name}.csv", csv_of_table(data))
    style.save(draw(data, family), *(folder / f"{family.name}.{suffix}" for suffix in ("png", "svg")))


@styled
def draw(data: pd.DataFrame, family: Family) -> Figure:
    """Draws two columns of panels in ladder order; all panels show the same campaigns from left to right."""
    variants = list(dict.fromkeys(data["variant"]))
    lines = max(1, -(-len(variants) // PANEL_COLUMNS))
    campaigns = data[["place", "campaign", "commit", "started"]].drop_duplicates("place")
    figure_look = Look(_stamp(data, list(campaigns["campaign"])))
    title = f"{TITLE} · {family.name}, case {family.headline_case}"
    figure = new_figure(title, 0.55 + PANEL_IN * lines, NOTE, figure_look)
    if not variants:
        figure.text(0.01, 0.5, "no campaign has timed this family on this GPU", color=MUTED, style="italic")
        return figure
    panels = figure.subplots(lines, min(PANEL_COLUMNS, len(variants)), sharex=True, squeeze=False)
    for axes in panels.flat[len(variants) :]:
        axes.set_visible(False)
    for axes, variant in zip(panels.flat, variants, strict=False):
        _panel(axes, data[data["variant"] == variant])
        axes.set_xlim(-0.5, len(campaigns) - 0.5)
        axes.set_xticks(campaigns["place"], _labels(campaigns))
    for place, axes in enumerate(panels.flat):
        axes.tick_params(axis="x", labelbottom=place + PANEL_COLUMNS >= len(variants))
    return figure


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    good = rows[rows["status"] == "ok"]
    name = str(rows["variant"].iloc[0]) + (" (baseline)" if rows["is_baseline"].iloc[0] else "")
    axes.set_title(f"{fit(name, 2.4)} (µs)", loc="left", pad=3)
    breaks = ((rows["status"] != "ok") | (rows["step"] == "REFUSED")).cumsum()
    for _, level in good.groupby(breaks[good.index]):
        axes.plot(level["place"], level["median_us"], color=MUTED, lw=0.9, zorder=1)
    low_us, high_us = _whiskers(good)
    axes.vlines(good["place"], low_us, high_us, color=INK, lw=1.0, zorder=1.5)
    axes.plot(good["place"], good["median_us"], marker="o", ms=3.5, color=INK, ls="", zorder=2)
    if len(good):
        low, high = float(low_us.min()), float(high_us.max())
        room = max(high - low, _LEAST_SPAN * high)
        axes.set_ylim((low + high - room) / 2 - 0.4 * room, (low + high + room) / 2 + 0.4 * room)
    for row in as_rows(rows.assign(low_us=low_us, high_us=high_us)):
        _mark(axes, row)
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axes.grid(axis="y")


def _whiskers(rows: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Returns both ends of each whisker: the spread between processes, or the quartiles of a single process."""
    single = rows["processes"] == 1
    return (
        rows["process_min_us"].where(~single, rows["q1_us"]),
        rows["process_max_us"].where(~single, rows["q3_us"]),
    )


def _mark(axes: Axes, row: Row) -> None:
    """Marks the change at a point, or states why the point is missing."""
    place = columns.number(row, "place")
    if row["status"] != "ok":
        text = fit(gap_text(str(row["status"]), ""), 0.8)
        axes.annotate(
            text,
            (place, 0.08),
            xycoords=("data", "axes fraction"),
            ha="center",
            color=MUTED,
            style="italic",
        )
    elif row["step"] == "REFUSED":
        axes.axvline(place - 0.5, color=MUTED, lw=0.9, ls=(0, (4, 2)))
    elif row["step"]:
        marker, face, edge = STYLES[str(row["step"])]
        us = columns.number(row, "median_us")
        axes.plot(place, us, marker=marker, mfc=face, mec=edge, ms=8, ls="", zorder=3)
        up = row["step"] == "SLOWER"
        end_us = columns.number(row, "high_us" if up else "low_us")
        axes.annotate(
            f"{100 * columns.number(row, 'change'):+.1f} %", (place, end_us), (0, 6 if up else -6),
            textcoords="offset points", ha="center", va="bottom" if up else "top", color=edge, bbox=ON_PAPER,
            annotation_clip=False,
        )  # fmt: skip


def _stamp(data: pd.DataFrame, names: list[str]) -> str:
    """Returns the GPU and the numbered campaigns; only the first and the last if there are many."""
    listed = [f"{place} = {name}" for place, name in enumerate(names, 1)]
    listed = listed if len(listed) <= MOST_NAMED else [listed[0], "…", listed[-1]]
    gpu = " + ".join(sorted({str(name) for name in data["gpu_name"] if name})) or "GPU unknown"
    count = "1 campaign" if len(names) == 1 else f"{len(names)} campaigns"
    return f"{gpu} · {count}: {', '.join(listed)}"


def _labels(campaigns: pd.DataFrame) -> list[str]:
    """Returns the numbers of the campaigns, with day and commit if there is room."""
    numbers = [str(place + 1) for place in campaigns["place"]]
    if len(numbers) > MOST_LABELLED:
        step = -(-len(numbers) // (2 * MOST_LABELLED))
        return [text if place % step == 0 else "" for place, text in enumerate(numbers)]
    about = zip(numbers, campaigns["started"].str[5:10], campaigns["commit"].str[:7], strict=True)
    return ["\n".join(text for text in texts if text) for texts in about]
