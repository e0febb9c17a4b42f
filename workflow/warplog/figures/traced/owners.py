"""Which elements of the result does each block, warp and thread write?"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from warplog.core.numbers import with_unit
from warplog.core.text import listed
from warplog.figures.shared.labels import INK, MUTED, is_narrow, line_in, tick, width_in
from warplog.figures.shared.style import Look, new_figure, ordered_style, styled
from warplog.figures.traced.above import Line, height_in, lines_above, write_above
from warplog.figures.traced.seen import cases, current, parents, stored_unseen, traced_in_part
from warplog.records.requested.accesses import WARP
from warplog.tables.files import ORIGIN_COLUMNS
from warplog.tables.view import FigureTables

NEEDS = ("accesses",)
TITLE = "Who writes which element"
NOTE = (
    "traced stores to {array} in case {case}; above: the tile of the first block, coloured by warp, with the elements "
    "of the first warp that writes outlined and those of its first thread filled; below: the tiles of all blocks, the "
    "first one filled{hidden}"
)
_MOST = 3
_THREAD = "#d55e00"
_TINT = 0.62  # how far the colours of warps are moved to white
_LOWEST, _HIGHEST = 0.3, 1.25  # of a panel, of its width
_INSET_IN = 0.45
Owned = NDArray[np.int64]


def data(tables: FigureTables, variant: str = "") -> pd.DataFrame:
    """Returns a row per run of elements that a thread of the first block writes, and per tile; `kind` says which.

    Shown are variants that divide their tiles in different ways; with `variant`, that one and its parent.
    """
    runs, tiles = (current(rows, tables, variant) for rows in (tables.access_owners, tables.access_tiles))
    names = _shown(runs, tables, variant)
    kept = ["family", "variant", "case", "array", "block", *ORIGIN_COLUMNS]
    own = runs[runs["variant"].isin(names)]
    own = own[[*kept, "thread", "row", "column"]].assign(height=1, width=own["elements"], kind="thread")
    whole = tiles[tiles["variant"].isin(names)]
    boxes = whole[[*kept, "rows", "columns"]].assign(
        row=whole["first_row"], column=whole["first_column"], height=whole["end_row"] - whole["first_row"],
        width=whole["end_column"] - whole["first_column"], kind="tile",
    )  # fmt: skip
    rows = pd.concat([own, boxes]) if len(own) else boxes.iloc[:0]
    place = {name: at for at, name in enumerate(names)}
    in_part = rows["variant"].isin(traced_in_part(tables))
    rows = rows.assign(panel=rows["variant"].map(place), hidden=stored_unseen(tables), in_part=in_part)
    columns = ["family", "variant", "case", "panel", "array", "rows", "columns", "kind", "block", "thread"]
    columns += ["row", "column", "height", "width", "hidden", "in_part", *ORIGIN_COLUMNS]
    return rows.sort_values("panel", kind="stable").reindex(columns=columns).reset_index(drop=True)


def _shown(runs: pd.DataFrame, tables: FigureTables, variant: str) -> list[str]:
    """Returns the variants to show: of the main path if there is one, the first and the last of those that differ."""
    ways = {str(name): _way(own) for name, own in runs.groupby("variant")}
    names = [name for name in parents(tables) if name in ways]
    if variant:
        return names if variant in names and len({ways[name] for name in names}) == len(names) else []
    path = set(tables.places.loc[tables.places["step"] > 0, "variant"])
    names = [name for name in names if name in path] or names
    distinct = list({ways[name]: name for name in reversed(names)}.values())[::-1]
    distinct.sort(key=names.index)
    if len(distinct) <= _MOST:
        return distinct
    return [distinct[round(at * (len(distinct) - 1) / (_MOST - 1))] for at in range(_MOST)]


def _way(own: pd.DataFrame) -> tuple[object, ...]:
    return tuple(own[["thread", "row", "column", "elements"]].itertuples(index=False, name=None))


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws a panel per variant: the first tile by warp and thread, and below where it lies in the array."""
    groups = [own for _, own in data.groupby("panel")]
    groups = groups[:: len(groups) - 1] if is_narrow() and len(groups) > 2 else groups
    first = data.iloc[0]
    columns = max(2 if is_narrow() else 3, len(groups))
    room_in = width_in() / columns - 0.45
    owned = [_owned(own) for own in groups]
    texts = [
        lines_above(str(own["variant"].iloc[0]), _about(of), room_in)
        for own, of in zip(groups, owned, strict=True)
    ]
    above = max(map(len, texts))
    shape = [np.clip(of.shape[0] / of.shape[1], _LOWEST, _HIGHEST) for of in owned]
    panel_in = room_in * float(max(shape))
    hidden = f"; {first['hidden']}" if first["hidden"] else ""
    note = NOTE.format(array=first["array"], case=cases(data), hidden=hidden)
    body_in = panel_in + height_in(above) + _INSET_IN + 0.5
    figure = new_figure(f"{_finding(groups, owned)} · {first['family']}", body_in, note, look)
    grid = figure.add_gridspec(2, columns, height_ratios=[panel_in, _INSET_IN])
    for at, (own, of) in enumerate(zip(groups, owned, strict=True)):
        axes = figure.add_subplot(grid[0, at])
        _tile(axes, own, of)
        write_above(axes, texts[at], above)
        _array(figure.add_subplot(grid[1, at]), own)
    return figure


def _tiles(own: pd.DataFrame) -> pd.DataFrame:
    return own[own["kind"] == "tile"]


def _owned(own: pd.DataFrame) -> Owned:
    """Returns the thread that writes each element of the first tile, -1 for none."""
    box = _tiles(own).iloc[0]
    owned = np.full((int(box["height"]), int(box["width"])), -1)
    runs = own.loc[own["kind"] == "thread", ["row", "column", "width", "thread"]] - [
        box["row"],
        box["column"],
        0,
        0,
    ]
    for row, column, width, thread in runs.astype(int).itertuples(index=False):
        owned[row, column : column + width] = thread
    return owned


def _about(owned: Owned) -> list[Line]:
    threads, counts = np.unique(owned[owned >= 0], return_counts=True)
    warp, of_warp = threads[0] // WARP, counts[threads // WARP == threads[0] // WARP].sum()
    return [
        (f"{owned.shape[0]} × {owned.shape[1]} by {tick(len(threads))} threads", {}),
        (f"warp {warp}: {with_unit(of_warp, 'element')}", {}),
        (f"thread {threads[0]}: {with_unit(counts[0], 'element')}", {"color": _THREAD}),
    ]


def _finding(groups: list[pd.DataFrame], owned: list[Owned]) -> str:
    """Returns how many elements a thread has in each variant."""
    each: dict[float, list[str]] = {}
    for own, of in zip(groups, owned, strict=True):
        count = (of >= 0).sum() / len(np.unique(of[of >= 0]))
        each.setdefault(count, []).append(str(own["variant"].iloc[0]))
    parts = [f"{with_unit(count, 'element')} in {listed(names)}" for count, names in each.items()]
    return f"{TITLE}: per thread {', '.join(parts)}"


def _tile(axes: Axes, own: pd.DataFrame, owned: Owned) -> None:
    """Draws the first tile: warps as areas with their number, the outline of the first one, and its first thread."""
    height, width = owned.shape
    warps = np.where(owned < 0, -1, owned // WARP)
    count, thread = int(warps.max()) + 1, int(owned[owned >= 0].min())
    areas = {warp: list(_rectangles(warps == warp)) for warp in range(count)}
    boxes = [_box(*area) for own in areas.values() for area in own]
    colours = [_tinted(ordered_style(warp, count).colour) for warp, own in areas.items() for _ in own]
    axes.add_collection(PolyCollection(boxes, fc=colours, ec="none"))
    axes.add_collection(LineCollection(list(_borders(warps)), colors="white", lw=0.7))
    axes.add_collection(
        PolyCollection(
            [_box(*area) for area in _rectangles(owned == thread)], fc=_THREAD, ec=_THREAD, lw=0.4, zorder=4
        )
    )
    axes.add_collection(LineCollection(list(_borders(warps == thread // WARP)), colors=INK, lw=1.0, zorder=3))
    box = _tiles(own).iloc[0]
    _frame(axes, height, width)
    axes.set_xticks([width], [tick(box["column"] + width)])
    axes.set_yticks([0, height], [tick(box["row"]), tick(box["row"] + height)])
    axes.tick_params(length=0, pad=2)
    least = line_in() * max(height, width) / 1.4  # elements that a number needs, roughly
    for warp, own_areas in areas.items():
        row, column, tall, wide = max(own_areas, key=lambda area: area[2] * area[3], default=(0, 0, 0, 0))
        if warp != thread // WARP and min(tall, wide) >= least:
            axes.text(column + wide / 2, row + tall / 2, f"{warp}", ha="center", va="center", color=MUTED)


def _tinted(colour: str) -> list[float]:
    return [1 - (1 - part) * (1 - _TINT) for part in to_rgb(colour)]


def _array(axes: Axes, own: pd.DataFrame) -> None:
    """Draws the array with the tiles of the blocks, the first one filled."""
    tiles = _tiles(own)
    first = tiles.iloc[0]
    rows, columns = int(first["rows"]), int(first["columns"])
    boxes = [_box(*place) for place in tiles[["row", "column", "height", "width"]].itertuples(index=False)]
    axes.add_collection(PolyCollection(boxes, fc="none", ec=MUTED, lw=0.4, clip_on=False))
    axes.add_collection(PolyCollection(boxes[:1], fc=MUTED, ec="none"))
    _frame(axes, rows, columns)
    axes.set(xticks=[], yticks=[], anchor="W")
    blocks = f"{len(tiles)} traced blocks" if first["in_part"] else with_unit(len(tiles), "block")
    axes.annotate(
        f"{first['array']}: {blocks}\n{tick(rows)} × {tick(columns)}",
        (1, 0.5), (4, 0), xycoords="axes fraction", textcoords="offset points", va="center", color=MUTED,
    )  # fmt: skip


def _frame(axes: Axes, height: int, width: int) -> None:
    axes.set(xlim=(0, width), ylim=(height, 0))
    if _LOWEST <= height / width <= 1 / _LOWEST:
        axes.set_aspect("equal", anchor="NW")
    axes.spines[:].set_visible(False)


def _box(row: float, column: float, height: float, width: float) -> list[tuple[float, float]]:
    return [(column, row), (column + width, row), (column + width, row + height), (column, row + height)]


def _rectangles(mask: NDArray[np.bool_]) -> Iterator[tuple[int, int, int, int]]:
    """Yields rectangles of the elements in the mask, as row, column, height and width; equal rows become one."""
    open_at: dict[tuple[int, int], int] = {}
    for row in range(len(mask) + 1):
        line = mask[row] if row < len(mask) else np.zeros(mask.shape[1], dtype=bool)
        ends = np.flatnonzero(np.diff(np.concatenate([[0], line, [0]]).astype(np.int8)))
        spans = {(int(start), int(end)) for start, end in zip(ends[::2], ends[1::2], strict=True)}
        for start, end in sorted(set(open_at) - spans):
            top = open_at.pop((start, end))
            yield top, start, row - top, end - start
        for span in spans - set(open_at):
            open_at[span] = row


def _borders(values: NDArray[Any]) -> Iterator[list[tuple[int, int]]]:
    """Yields the lines between elements with different values, and around them."""
    for turned in (False, True):
        padded = np.pad(
            values.T if turned else values,
            ((1, 1), (0, 0)),
            constant_values=-2 if values.dtype != bool else 0,
        )
        differs = padded[1:] != padded[:-1]
        for place, line in enumerate(differs):
            ends = np.flatnonzero(np.diff(np.concatenate([[0], line, [0]]).astype(np.int8)))
            for start, end in zip(ends[::2], ends[1::2], strict=True):
                yield [(place, start), (place, end)] if turned else [(start, place), (end, place)]
