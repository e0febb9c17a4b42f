"""How long does a load take, and in which cache does a ring of this size lie?"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from warplog.figures.shared.labels import (
    MUTED,
    ON_PAPER,
    SideLabel,
    drawn_as,
    fit,
    is_narrow,
    line_in,
    name_in,
    number,
    plot_width_in,
    side_labels,
    tick,
)
from warplog.figures.shared.latencies import SRAM_KIB, latencies, short_bytes
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.tables.view import FigureTables

NEEDS = ("listed",)
TITLE = "Latency of a load"
NOTE = (
    "difference of two cases over that of their hops, in cycles of the SM clock; dotted: capacity of the caches; rings "
    "of 64Mi and more were not read before, so that each load goes to memory"
)


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per variant and size of the ring, with the capacity of L1 and L2 in bytes."""
    rows = latencies(tables)
    arch = str(tables.gpus["arch"].iloc[0]) if "arch" in tables.gpus and len(tables.gpus) else ""
    rows["l1_bytes"] = SRAM_KIB.get(arch, (np.nan,))[0] * 1024
    rows["l2_bytes"] = tables.peak("l2_mib") * 2**20
    return rows


def _finding(good: pd.DataFrame) -> str:
    """Returns the shortest and the longest latency of the first variant with several sizes; else the title."""
    for name, own in good.groupby("variant", sort=False):
        if len(own) > 1:
            ends = own.sort_values("size").iloc[[0, -1]]
            low, high = ends["hop_cycles"]
            small, large = map(short_bytes, ends["size"])
            return f"A load of {name} takes {number(low)} cycles in {small}, {number(high)} in {large}"
    return TITLE


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws a line per variant over the size of the ring, both axes logarithmic."""
    good = data[data["gap"] == ""]
    names = list(dict.fromkeys(data["variant"]))
    body = max(2.6 if is_narrow() else 3.0, 0.75 + 1.3 * line_in() * len(names))
    figure = new_figure(f"{_finding(good)} · {data.iloc[0]['family']}", body, NOTE, look)
    axes = figure.add_subplot()
    labels = []
    for name in names:
        own, style = good[good["variant"] == name], look.style(name)
        shown = fit(name, name_in())
        if own.empty:
            gap = str(data.loc[data["variant"] == name, "gap"].iloc[0])
            labels.append(SideLabel(np.nan, np.nan, f"{shown}: {fit(gap, name_in())}"))
            continue
        axes.plot(own["size"], own["hop_cycles"], **drawn_as(style.edge, style.marker, style.dashes))
        end = own.iloc[-1]
        labels.append(
            SideLabel(end["size"], end["hop_cycles"], shown, style.edge, style.marker, style.dashes)
        )
    _axes(axes, good)
    _caches(axes, data.iloc[0])
    side_labels(axes, labels, body - 0.6, plot_width_in(labels))
    return figure


def _axes(axes: Axes, good: pd.DataFrame) -> None:
    sizes = sorted(float(size) for size in good["size"].unique()) or [1.0]
    axes.set(
        xscale="log", yscale="log", xlabel="size of the ring (bytes)", ylabel="latency of a load (cycles)"
    )
    axes.set_xlim(sizes[0] / 1.4, sizes[-1] * 1.4)
    every = 16 if is_narrow() else 4
    ticks = [2**14 * every**i for i in range(12) if sizes[0] <= 2**14 * every**i <= sizes[-1]]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: short_bytes(size)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda cycles, _: tick(cycles)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y")


def _caches(axes: Axes, first: pd.Series) -> None:
    """Marks where L1 and L2 end."""
    for name, size in (("L1", first["l1_bytes"]), ("L2", first["l2_bytes"])):
        if np.isfinite(size):
            axes.axvline(size, color=MUTED, lw=0.8, ls=":")
            axes.annotate(
                f"{name} {short_bytes(size)}",
                (size, 1),
                (-3, -3),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="right",
                va="top",
                color=MUTED,
                bbox=ON_PAPER,
            )
