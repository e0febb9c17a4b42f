"""In which order do blocks take the tiles of the result, and how much does a wave of them read?"""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from warplog.core.text import listed
from warplog.figures.shared.labels import (
    FAINT,
    INK,
    is_narrow,
    number,
    tick,
    width_in,
)
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.figures.traced.above import height_in, lines_above, write_above
from warplog.figures.traced.seen import cases, current, parents, stored_unseen, traced_in_part
from warplog.tables.files import ORIGIN_COLUMNS
from warplog.tables.view import FigureTables

NEEDS = ("accesses",)
TITLE = "Order of the blocks' tiles"
NOTE = (
    "traced stores to {array} in case {case}; the line follows the tiles in the order of the blocks from the dot on; "
    "filled are the tiles of the first wave, the blocks that fit on the GPU at once; bytes are the distinct ones that "
    "it reads from global memory, in sectors of 32 bytes{hidden}"
)
_MOST, _LEAST_TILES = 3, 6
_WAVE, _PATH = "#f3c9a8", "#d55e00"
_READ = ["wave_blocks", "wave_bytes", "wave_bytes_of_blocks"]


def data(tables: FigureTables, variant: str = "") -> pd.DataFrame:
    """Returns a row per block of the variants that take their tiles in different orders; none if all take the same.

    With `variant` it is that one and its parent. A variant whose blocks write fewer than six tiles has no order.
    """
    tiles = current(tables.access_tiles, tables, variant)
    orders = {str(name): _order(own) for name, own in tiles.groupby("variant") if len(own) >= _LEAST_TILES}
    names = _shown(tables, orders, variant)
    rows = tiles[tiles["variant"].isin(names)].reset_index(drop=True)
    rows = rows.merge(_reuse(tables, rows), on="variant", how="left")
    place = {name: at for at, name in enumerate(names)}
    in_part = rows["variant"].isin(traced_in_part(tables))
    rows = rows.assign(panel=rows["variant"].map(place), hidden=stored_unseen(tables), in_part=in_part)
    columns = ["family", "variant", "case", "panel", "array", "rows", "columns", "block"]
    columns += [
        "first_row",
        "end_row",
        "first_column",
        "end_column",
        *_READ,
        "hidden",
        "in_part",
        *ORIGIN_COLUMNS,
    ]
    return rows.sort_values(["panel", "block"], kind="stable").reindex(columns=columns).reset_index(drop=True)


def _reuse(tables: FigureTables, rows: pd.DataFrame) -> pd.DataFrame:
    """Returns what the first wave of the kernel that writes the tiles reads: the one with as many blocks as needed."""
    last = rows.groupby("variant")["block"].max().rename("last").reset_index()
    kernels = current(tables.traced_kernels, tables)[["variant", "blocks", *_READ]].merge(last, on="variant")
    return (
        kernels[kernels["blocks"] > kernels["last"]]
        .sort_values("blocks")
        .drop_duplicates("variant")[["variant", *_READ]]
    )


def _shown(tables: FigureTables, orders: dict[str, tuple[tuple[int, int], ...]], variant: str) -> list[str]:
    pairs = [(parent, name) for name, parent in parents(tables).items()]
    changed = [pair for pair in pairs if set(pair) <= set(orders) and orders[pair[0]] != orders[pair[1]]]
    if variant:
        return next((list(pair) for pair in changed if pair[1] == variant), [])
    names = dict.fromkeys(name for pair in changed for name in pair)
    return list({orders[name]: name for name in reversed(names)}.values())[::-1][:_MOST]


def _order(own: pd.DataFrame) -> tuple[tuple[int, int], ...]:
    """Returns row and column of each tile in the order of the blocks, counted in tiles."""
    placed = (
        own.sort_values("block", kind="stable")[["first_row", "first_column"]]
        .rank(method="dense")
        .astype(int)
    )
    return tuple(placed.itertuples(index=False, name=None))


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws a panel per variant with the way through the tiles."""
    groups = [own for _, own in data.groupby("panel")]
    first, columns = data.iloc[0], max(2 if is_narrow() else 3, len(groups))
    room_in = width_in() / columns - 0.2
    texts = [
        lines_above(str(own["variant"].iloc[0]), [(text, {}) for text in _about(own)], room_in)
        for own in groups
    ]
    above = max(map(len, texts))
    hidden = f"; {first['hidden']}" if first["hidden"] else ""
    note = NOTE.format(array=first["array"], case=cases(data), hidden=hidden)
    body_in = room_in + height_in(above) + 0.25
    figure = new_figure(f"{_finding(groups)} · {first['family']}", body_in, note, look)
    grid = figure.add_gridspec(1, columns)
    for at, own in enumerate(groups):
        axes = figure.add_subplot(grid[0, at])
        _way(axes, own)
        write_above(axes, texts[at], above)
    return figure


def _finding(groups: list[pd.DataFrame]) -> str:
    """Returns how much the first wave reads in each order, if that is known and not all of the blocks."""
    names = [str(own["variant"].iloc[0]) for own in groups]
    if any(pd.isna(own["wave_bytes"].iloc[0]) or _is_whole(own) for own in groups):
        return f"{TITLE}: {listed(names)}"
    parts = [
        f"{_bytes(own['wave_bytes'].iloc[0])} in {name}" for own, name in zip(groups, names, strict=True)
    ]
    return f"{TITLE}: the first wave reads {', '.join(parts)}"


def _is_whole(own: pd.DataFrame) -> bool:
    """Returns whether the first wave has all blocks."""
    return bool(own["wave_blocks"].iloc[0] >= len(own))


def _about(own: pd.DataFrame) -> list[str]:
    first = own.iloc[0]
    blocks = f"{tick(len(own))} {'traced blocks' if first['in_part'] else 'blocks'}"
    lines = [f"{blocks} over {tick(first['rows'])} × {tick(first['columns'])}"]
    if pd.isna(first["wave_bytes"]):
        return [*lines, "what they read was not traced"]
    wave = "all at once" if _is_whole(own) else f"first {tick(first['wave_blocks'])}"
    times = first["wave_bytes_of_blocks"] / first["wave_bytes"]
    return [*lines, f"{wave} read {_bytes(first['wave_bytes'])}", f"each byte by {number(times)} blocks"]


def _bytes(value: float) -> str:
    return f"{number(value / 1e6)} MB" if value >= 1e6 else f"{number(value / 1e3)} kB"


def _way(axes: Axes, own: pd.DataFrame) -> None:
    """Draws the array, the tiles of the first wave, and the way through the middles of all tiles."""
    first = own.iloc[0]
    sides = own[["first_row", "end_row", "first_column", "end_column"]].itertuples(index=False)
    boxes = [[(left, top), (right, top), (right, low), (left, low)] for top, low, left, right in sides]
    wave = 0 if pd.isna(first["wave_blocks"]) or _is_whole(own) else int(first["wave_blocks"])
    edges: Any = {"ec": FAINT, "lw": 0.5, "clip_on": False}
    axes.add_collection(PolyCollection(boxes[wave:], fc="none", **edges))
    axes.add_collection(PolyCollection(boxes[:wave], fc=_WAVE, **edges))
    across = (own["first_column"] + own["end_column"]) / 2
    down = (own["first_row"] + own["end_row"]) / 2
    axes.plot(across, down, color=_PATH, lw=0.9)
    axes.plot(across.iloc[:1], down.iloc[:1], "o", color=INK, ms=3)
    axes.set(xlim=(0, first["columns"]), ylim=(first["rows"], 0), xticks=[], yticks=[])
    axes.set_aspect("equal", anchor="NW")
    axes.spines[:].set_visible(False)
