"""How many bytes must come from device memory if tiles are taken in another order?"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from warplog.figures.shared.labels import (
    INK,
    MUTED,
    is_narrow,
    legend_above,
    legend_rows,
    number,
    row_in,
    tick,
    width_in,
)
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.tables.files import ORIGIN_COLUMNS
from warplog.tables.view import FigureTables

NEEDS = ("listed",)
TITLE = "Order of tiles"
SIZE, TILE, BYTES = 8192, 256, 2  # C = A*B^T in bf16, a tile of 256 x 256 results per cluster of two blocks
NOTE = (
    "calculated, not measured: C = A*B\u1d40 at {size} in bf16 by clusters of two blocks with {tile} x {tile} results; "
    "each wave reads the rows of A and of B that its tiles need once; bars: all waves together"
)
_WAVE = "#d55e00"
_OPERANDS = {"A": "#0072b2", "B": "#009e73"}
_BARS = ("#5e4fa2", "#c6bfe0")  # they also differ in lightness

Place = tuple[int, int]


def in_groups(index: int, rows: int, columns: int, group: int) -> Place:
    """Returns row and column of a tile as tiles.cuh does: column by column within groups of rows."""
    first, within = index // (group * columns) * group, index % (group * columns)
    height = min(group, rows - first)
    return first + within % height, within // height


def on_hilbert_curve(distance: int, side: int) -> Place:
    """Returns row and column on the curve through a square, as tiles.cuh does."""
    row = column = 0
    half = 1
    while half < side:
        right = distance // 2 & 1
        down = (distance ^ right) & 1
        if not down:
            row, column = (half - 1 - column, half - 1 - row) if right else (column, row)
        row, column = row + half * down, column + half * right
        half, distance = 2 * half, distance // 4
    return row, column


def along_hilbert(index: int, rows: int, columns: int) -> Place:
    """Returns row and column of a tile as tiles.cuh does: along the curves of the largest squares that fit."""
    side = 1 << (min(rows, columns).bit_length() - 1)
    first_row, within = index // (side * columns) * side, index % (side * columns)
    height = min(side, rows - first_row)
    first_column, inside = within // (side * height) * side, within % (side * height)
    width = min(side, columns - first_column)
    square = height == width == side
    row, column = on_hilbert_curve(inside, side) if square else (inside % height, inside // height)
    return first_row + row, first_column + column


def even_workers(work: int, most: int) -> int:
    """Returns the fewest workers that need no more rounds than `most`, as tiles.cuh does."""
    rounds = -(-work // most)
    return -(-work // rounds)


ORDERS: dict[str, Callable[[int, int, int], Place]] = {
    "row by row": lambda index, rows, columns: in_groups(index, rows, columns, 1),
    "in groups of 8 rows": lambda index, rows, columns: in_groups(index, rows, columns, 8),
    "on a Hilbert curve": along_hilbert,
}
_SHORT = {"in groups of 8 rows": "groups of 8", "on a Hilbert curve": "Hilbert"}


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per tile of each order, for as many clusters as the GPU has room for and for even waves.

    `wave_mbytes` are the bytes that the tile's wave reads, `mbytes` those of all waves. Without the number of SMs there
    are no rows.
    """
    sms = tables.peak("sms")
    most = int(sms) // 2 if sms >= 2 else 0
    side = SIZE // TILE
    chosen = sorted({most, even_workers(side * side, most)}, reverse=True) if most else []
    pieces = [_schedule(order, clusters, side) for order in ORDERS for clusters in chosen]
    rows = pd.concat(pieces) if pieces else pd.DataFrame(columns=["order"])
    origin = tables.ladder(tables.case)[ORIGIN_COLUMNS].iloc[0]
    return rows.assign(family=tables.family, **origin).reset_index(drop=True)


def _schedule(order: str, clusters: int, side: int) -> pd.DataFrame:
    places = [ORDERS[order](index, side, side) for index in range(side * side)]
    rows = pd.DataFrame(places, columns=["tile_row", "tile_column"])
    rows.insert(0, "index", range(len(rows)))
    rows["wave"] = rows["index"] // clusters
    distinct = rows.groupby("wave")[["tile_row", "tile_column"]].nunique().sum(axis=1)
    per_wave = distinct * TILE * SIZE * BYTES / 1e6
    rows["wave_mbytes"], rows["mbytes"] = rows["wave"].map(per_wave), per_wave.sum()
    return rows.assign(order=order, clusters=clusters)


def _totals(data: pd.DataFrame) -> pd.DataFrame:
    """Returns the megabytes of all waves: a row per order, a column per number of clusters, the most first."""
    totals = data.pivot_table(index="order", columns="clusters", values="mbytes", sort=False)
    return totals.loc[list(ORDERS), sorted(totals.columns, reverse=True)]


def _finding(totals: pd.DataFrame) -> str:
    """Returns the bytes of each order, the fewest first, for the most clusters."""
    parts = [f"{number(mbytes)} MB {order}" for order, mbytes in totals.iloc[:, 0].sort_values().items()]
    return f"{TITLE}: {', '.join(parts)}"


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws the way through the tiles, one wave and what it reads; below, the bytes of all waves per order."""
    totals, wave = _totals(data), int(data["wave"].max()) // 3
    most, bars_in = totals.columns[0], row_in() * totals.size
    handles = list(_legend(totals, wave))
    title = f"{_finding(totals)} · {data.iloc[0]['family']}"
    panel_in = (width_in() - 0.9) / len(ORDERS)
    figure = new_figure(title, panel_in + bars_in + 1.4, NOTE.format(size=SIZE, tile=TILE), look)
    grid = figure.add_gridspec(2, len(ORDERS), height_ratios=[panel_in, bars_in])
    for panel, order in enumerate(ORDERS):
        own = data[(data["order"] == order) & (data["clusters"] == most)]
        _way(figure.add_subplot(grid[0, panel]), own, wave)
    _bytes(figure.add_subplot(grid[1, :]), totals)
    legend_above(figure.axes[0], handles)
    room = "\n" * legend_rows([str(handle.get_label()) for handle in handles])
    for axes, order in zip(figure.axes, ORDERS, strict=False):
        axes.set_title(f"{room} \n{_short(order)}", loc="left", pad=4 + 0.09 * 72 * panel_in)
    return figure


def _short(order: str) -> str:
    return _SHORT.get(order, order) if is_narrow() else order


def _legend(totals: pd.DataFrame, wave: int) -> Iterator[Patch]:
    yield Patch(fc=_WAVE, ec=INK, lw=0.5, label=f"wave {wave + 1}")
    for operand, colour in _OPERANDS.items():
        yield Patch(fc=colour, ec=INK, lw=0.5, label=f"its rows of {operand}")
    for clusters, colour in zip(totals.columns, _BARS, strict=False):
        yield Patch(fc=colour, ec=INK, lw=0.5, label=f"{clusters} clusters")


def _way(axes: Axes, own: pd.DataFrame, wave: int) -> None:
    """Draws the way through all tiles, the tiles of one wave, and beside them the rows of A and B that it reads."""
    side, taken = SIZE // TILE, own[own["wave"] == wave]
    image = np.zeros((side, side))
    image[taken["tile_row"], taken["tile_column"]] = 1
    axes.pcolormesh(np.ma.masked_equal(image, 0), cmap="Oranges", vmin=0, vmax=1.4, zorder=1)
    axes.plot(own["tile_column"] + 0.5, own["tile_row"] + 0.5, color=MUTED, lw=0.45, zorder=2)
    edge: Any = {"clip_on": False, "ec": "none", "lw": 0}
    rows, columns = taken["tile_row"].unique(), taken["tile_column"].unique()
    axes.barh(rows + 0.5, -1.6, 1, left=-0.7, color=_OPERANDS["A"], **edge)
    axes.bar(columns + 0.5, -1.6, 1, bottom=-0.7, color=_OPERANDS["B"], **edge)
    axes.set(xlim=(0, side), ylim=(side, 0), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.set_xlabel(f"{number(float(taken['wave_mbytes'].iloc[0]))} MB")


def _bytes(axes: Axes, totals: pd.DataFrame) -> None:
    count = len(totals.columns)
    for place, (clusters, colour) in enumerate(zip(totals.columns, _BARS, strict=False)):
        at = np.arange(len(totals)) + (place - (count - 1) / 2) * 0.8 / count
        axes.barh(at, totals[clusters], 0.8 / count, color=colour, ec=INK, lw=0.5)
        for y, value in zip(at, totals[clusters], strict=True):
            axes.annotate(number(value), (value, y), (3, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(totals)), [_short(str(order)) for order in totals.index])
    axes.set_ylim(len(totals) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.2)
    axes.set_xlabel("read in all waves (MB)")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)
