"""The figure of a family on several GPUs: the speed of each variant, and its share of each GPU's peak."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from warplog.core.columns import number
from warplog.core.numbers import rate_unit
from warplog.figures.shared.labels import FAINT, bar_rows, gap_note, legend_above, row_in, tick
from warplog.figures.shared.style import MARKERS, Look, new_figure, styled
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables

TITLE = "Speed on several GPUs"
NOTE = (
    "points: median time at rest of the headline case, as a rate; the share is that of the peak that each GPU's table"
    " states for this quantity. The ratio between two GPUs is no verdict: their clocks, drivers and memory differ"
)
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")  # Okabe and Ito


def data(campaigns: Mapping[str, FigureTables]) -> pd.DataFrame:
    """Returns one row per variant and GPU at the headline case of the first campaign.

    `value` is the family's quantity (GFLOP/s, GB/s, or µs if it has neither FLOPs nor bytes), `share_of_peak` from 0 to
    1, NaN if the GPU's peak is unknown.
    """
    case = next(iter(campaigns.values())).case
    quantity = next(iter(campaigns.values())).quantity()
    order = list(
        dict.fromkeys(name for tables in campaigns.values() for name in tables.ladder(case)["variant"])
    )
    rows = []
    for gpu, tables in campaigns.items():
        own = tables.quantity()
        peak = own.peak if own.column == quantity.column else np.nan
        for row in as_rows(tables.ladder(case)):
            value = number(row, quantity.column) if row["status"] == "ok" else np.nan
            rows.append(
                {
                    **{name: row[name] for name in ("family", "case", "variant", "is_baseline")},
                    **{
                        "gpu": gpu,
                        "gpu_name": row["gpu_name"],
                        "origin": row["origin"],
                        "campaign": row["campaign"],
                    },
                    **{"median_us": row["median_us"], "quantity": quantity.column, "unit": quantity.unit},
                    **{
                        "value": value,
                        "share_of_peak": value / peak,
                        "ratio_to_baseline": row["ratio_to_baseline"],
                    },
                    "gap": row["gap"],
                }
            )
    table = pd.DataFrame(rows)
    return table.sort_values(
        "variant", key=lambda names: names.map(order.index), kind="stable", ignore_index=True
    )


@styled
def draw(rows: pd.DataFrame) -> Figure:
    """Draws one row per variant, a marker per GPU: the speed on the left, the share of the peak on the right."""
    gpus = list(dict.fromkeys(rows["gpu"]))
    names = rows.drop_duplicates("variant")
    family, case = str(rows["family"].iloc[0]), str(rows["case"].iloc[0])
    figure = new_figure(
        f"{TITLE} · {family}, case {case}", 0.9 + row_in() * len(names), NOTE, Look(_stamp(rows))
    )
    unit, factor = rate_unit(str(rows["unit"].iloc[0]), rows["value"])
    shares = rows["share_of_peak"].notna().any()
    panels = figure.subplots(
        1, 2 if shares else 1, sharey=True, squeeze=False, width_ratios=[3, 2][: 1 + shares]
    )
    bar_rows(panels[0, 0], names["variant"], names["is_baseline"])
    _panel(panels[0, 0], rows, gpus, rows["value"] * factor, unit)
    if shares:
        _panel(panels[0, 1], rows, gpus, 100 * rows["share_of_peak"], "% of the GPU's peak")
    places = {name: place for place, name in enumerate(names["variant"])}
    for name, gap in _gaps(rows).items():
        gap_note(panels[0, 0], places[name], gap)
    legend_above(panels[0, 0], [_mark(place, gpu) for place, gpu in enumerate(gpus)])
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, gpus: list[str], values: pd.Series, label: str) -> None:
    """Draws a line from the slowest to the fastest GPU of each variant, and a marker per GPU."""
    places = rows["variant"].map({name: place for place, name in enumerate(rows["variant"].unique())})
    ends = values.groupby(places).agg(["min", "max"]).dropna()
    axes.hlines(ends.index, ends["min"], ends["max"], color=FAINT, lw=2.0, zorder=1)
    for place, gpu in enumerate(gpus):
        own = rows["gpu"] == gpu
        mark = _mark(place, gpu)
        axes.plot(
            values[own], places[own], ls="", marker=mark.get_marker(), color=str(mark.get_color()), zorder=2
        )
    numbers = values.dropna()
    if len(numbers) and numbers.max() > 10 * numbers[numbers > 0].min():
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        label += " (log scale)"
    else:
        axes.set_xlim(left=0)
    axes.set_xlabel(label)
    axes.grid(True, axis="x")  # without True, a second call would hide it again
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _mark(place: int, gpu: str) -> Line2D:
    colour, marker = _COLOURS[place % len(_COLOURS)], MARKERS[place % len(MARKERS)]
    return Line2D([], [], ls="", marker=marker, color=colour, label=gpu)


def _gaps(rows: pd.DataFrame) -> dict[str, str]:
    """Returns why there is nothing to draw, for variants without a value on any GPU."""
    empty = rows.groupby("variant", sort=False).filter(lambda own: own["value"].isna().all())
    return {str(name): str(gap) or "n/a" for name, gap in zip(empty["variant"], empty["gap"], strict=True)}


def _stamp(rows: pd.DataFrame) -> str:
    """Returns the GPU, origin and campaign of each part of the figure."""
    gpus = as_rows(rows.drop_duplicates("gpu"))
    return " · ".join(f"{row['gpu_name']}, {row['origin']} campaign {row['campaign']}" for row in gpus)
