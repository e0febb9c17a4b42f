"""Lanes of a request: which instructions stand side by side, and memory in the colours of the lanes that touch it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from warplog.core.numbers import with_unit
from warplog.core.text import listed
from warplog.figures.shared.labels import FAINT, MUTED, fit, is_narrow, line_in, tick, width_in
from warplog.figures.shared.style import Look, new_figure, ordered_style
from warplog.figures.traced.above import Line, height_in, lines_above, write_above
from warplog.figures.traced.seen import current, parents
from warplog.records.requested.accesses import WARP
from warplog.tables.files import ORIGIN_COLUMNS
from warplog.tables.view import FigureTables

COLOURS = [ordered_style(lane, WARP).colour for lane in range(WARP)]
ACROSS = 32  # words of a line of memory, or banks
_MOST_COLUMNS, _MOST_ROWS = 3, 3
_LEAST = 0.5  # sectors or wavefronts per request that make a difference
_PITCH_IN, _ALL_IN = (0.046, 0.12), 1.5  # heights of a row of cells, and of all rows if they are few
_TICKS_IN = 0.42  # below the lowest panel of a variant
_ACCESS = ["variant", "launch", "offset", "space"]
_SAME = ["array", "kind"]  # what the same access has in two variants
_WORDS = {"load": "from", "store": "to", "async copy": "from", "atomic": "on"}
_COLUMNS = [
    "family", "variant", "case", "column", "row", "launch", "offset", "opcode", "file", "line", "text", "array",
    "kind", "requests", "per_request", "ideal_per_request", "ways", "block", "warp", "size_bytes", "lane", "address",
]  # fmt: skip

Names = Sequence[str]


def compared(tables: FigureTables, space: str, cost: str, variant: str = "") -> pd.DataFrame:
    """Returns the lanes of the accesses to show, placed by `row` (the access) and `column` (the variant).

    Side by side stand the variant over which a child gains the most, and its children that gain, else those that differ
    from it; with `variant`, that one and its parent. A variant with excess stands by itself if none differs from its
    parent. Of each array and kind it is the instruction with the most excess per request, of either cost.

    Args:
        space: global or shared.
        cost: the column of `access_lanes` that is counted, sectors or wavefronts.
    """
    rows = current(tables.access_lanes, tables, variant)
    rows = rows[(rows["space"] == space) & rows[cost].notna() & (rows["requests"] > 0)]
    rows = rows.assign(
        per_request=rows[cost] / rows["requests"], ideal_per_request=rows[f"{cost}_ideal"] / rows["requests"]
    )
    rows = rows.assign(excess=rows["per_request"] - rows["ideal_per_request"])
    worst = rows.drop_duplicates(_ACCESS).sort_values(["excess", "requests"], ascending=False, kind="stable")
    worst = worst.drop_duplicates(["variant", *_SAME])
    names = _side_by_side(worst, parents(tables), variant)
    if not names:
        return rows.iloc[:0].reindex(columns=[*_COLUMNS, *ORIGIN_COLUMNS])
    shown = worst[worst["variant"].isin(names)]
    kept = _most_different(shown)
    places = {name: place for place, name in enumerate(names)}
    shown = shown.assign(
        column=shown["variant"].map(places),
        row=[kept.get(access, -1) for access in zip(shown["array"], shown["kind"], strict=True)],
    )
    placed = rows.merge(shown.loc[shown["row"] >= 0, [*_ACCESS, "column", "row"]], on=_ACCESS)
    placed = placed.sort_values(["row", "column", "lane"], kind="stable")
    return placed.reindex(columns=[*_COLUMNS, *ORIGIN_COLUMNS]).reset_index(drop=True)


def _side_by_side(worst: pd.DataFrame, parents: Mapping[str, str], variant: str) -> list[str]:
    excess: dict[str, dict[tuple[str, str], float]] = {name: {} for name in parents}
    for name, array, kind, beyond in worst[["variant", *_SAME, "excess"]].itertuples(index=False):
        excess[name][array, kind] = beyond

    def gain(name: str) -> float:
        own, before = excess[name], excess.get(parents[name], {})
        return max((before[access] - own[access] for access in own if access in before), default=0.0)

    def change(name: str) -> float:
        own, before = excess[name], excess.get(parents[name], {})
        return max((abs(own[access] - before[access]) for access in own if access in before), default=0.0)

    for measure in (change,) if variant else (gain, change):
        chosen = variant or max(parents, key=measure)
        if measure(chosen) >= _LEAST:
            children = [
                name for name in parents if parents[name] == parents[chosen] and measure(name) >= _LEAST
            ]
            kept = [variant] if variant else sorted(children, key=measure, reverse=True)[: _MOST_COLUMNS - 1]
            return [parents[chosen], *(name for name in children if name in kept)]
    alone = variant or max(parents, key=lambda name: max(excess[name].values(), default=0.0))
    return [alone] if max(excess[alone].values(), default=0.0) >= _LEAST else []


def _most_different(shown: pd.DataFrame) -> Mapping[tuple[str, str], int]:
    """Returns the rows of the accesses that differ the most, in the order of the source lines."""
    spread = shown.groupby(_SAME).agg(
        least=("per_request", "min"),
        most=("per_request", "max"),
        excess=("excess", "max"),
        line=("line", "min"),
    )
    spread["shown"] = np.maximum(spread["most"] - spread["least"], spread["excess"])
    kept = spread[spread["shown"] >= _LEAST].nlargest(_MOST_ROWS, "shown").sort_values("line", kind="stable")
    return {key: place for place, key in enumerate(kept.index)}


@dataclass(frozen=True)
class Cell:
    """A stretch of a row in the colours of the lanes that access it: from `start` to `end`, of ACROSS words."""

    row: int
    start: float
    end: float
    lanes: tuple[int, ...]


@dataclass(frozen=True)
class Panel:
    """A request: where its rows begin, its cells, and what moves with them without being accessed.

    Attributes:
        tops: place of each row from above, in heights of a row.
        moved: row, start and end.
        seams: where one thing that moves as a whole ends beside the next.
    """

    tops: Sequence[float]
    cells: Sequence[Cell]
    moved: Sequence[tuple[int, float, float]]
    seams: Sequence[float] = ()


def by_place(pieces: Iterable[tuple[tuple[int, float, float], int]]) -> list[Cell]:
    """Returns a cell per place, with all lanes that access it."""
    lanes: dict[tuple[int, float, float], list[int]] = {}
    for place, lane in pieces:
        lanes.setdefault(place, []).append(lane)
    return [Cell(*place, tuple(own)) for place, own in sorted(lanes.items())]


def draw(
    data: pd.DataFrame, look: Look, heading: tuple[str, str], panel: Callable[[pd.DataFrame], Panel],
    about: Callable[[pd.DataFrame], Names], ticks: tuple[Mapping[int, str], str],
) -> Figure:  # fmt: skip
    """Draws a panel per access and variant, with the same scale.

    Args:
        heading: title and note.
        panel: what to draw of the lanes of a request.
        about: the lines above a panel that say what the request is and costs.
        ticks: labels of places below the lowest panels, and what they are.
    """
    title, note = heading
    columns, rows = int(data["column"].max()) + 1, int(data["row"].max()) + 1
    groups = {
        (int(own["row"].iloc[0]), int(own["column"].iloc[0])): own
        for _, own in data.groupby(["row", "column"])
    }
    panels = {place: panel(own) for place, own in groups.items()}
    depths = [max(own.tops[-1] + 1 for (row, _), own in panels.items() if row == at) for at in range(rows)]
    room_in = width_in() / columns - (0.36 if is_narrow() else 0.4)  # beside the panel's lanes
    above = {place: _above(own, place[0] == 0, about(own), room_in) for place, own in groups.items()}
    lines = [max(len(text) for (row, _), text in above.items() if row == at) for at in range(rows)]
    lowest = {at: max(row for row, column in panels if column == at) for at in range(columns)}
    around_in = height_in(sum(lines)) + 0.2 * rows + _TICKS_IN * len(set(lowest.values()))
    pitch_in = float(np.clip(_ALL_IN / sum(depths), *_PITCH_IN))
    figure = new_figure(title, pitch_in * sum(depths) + around_in, note, look)
    grid = figure.add_gridspec(rows, max(columns, 2), height_ratios=depths)
    for (row, column), own in panels.items():
        axes = figure.add_subplot(grid[row, column])
        _memory(axes, own, depths[row], pitch_in)
        write_above(axes, above[row, column], lines[row])
        is_last = row == lowest[column]
        places, label = ticks
        axes.set_xticks(list(places), list(places.values()) if is_last else [])
        axes.set_xlabel(label if is_last else "")
        if column == 0 and pitch_in * len(own.tops) > 2 * line_in():
            axes.set_ylabel("lane")
    return figure


def _above(own: pd.DataFrame, is_top: bool, about: Names, room_in: float) -> list[Line]:
    """Returns the lines above a panel: variant, request, and source line."""
    first = own.iloc[0]
    lines = lines_above(str(first["variant"]) if is_top else "", [(text, {}) for text in about], room_in)
    code = " ".join(str(first["text"]).split())
    code = f"{first['line']}: {code}" if code else f"{first['file']}, line {first['line']}"
    return [*lines, (fit(code, room_in - 0.1), {"color": MUTED})] if first["line"] else lines


def _memory(axes: Axes, panel: Panel, depth: float, pitch_in: float) -> None:
    """Draws the rows of a panel from the top down, with the lanes of each to its left."""
    grey = [_box(panel.tops[row], start, end) for row, start, end in panel.moved]
    axes.add_collection(PolyCollection(grey, fc=FAINT, ec="none"))
    boxes, colours = [], []
    for cell in panel.cells:
        height = 1 / len(cell.lanes)  # a stripe per lane
        boxes += [
            _box(panel.tops[cell.row], cell.start, cell.end, n * height, height)
            for n in range(len(cell.lanes))
        ]
        colours += [COLOURS[lane] for lane in cell.lanes]
    axes.add_collection(PolyCollection(boxes, fc=colours, ec="none"))
    axes.vlines(panel.seams, 0, panel.tops[-1] + 1, color="white", lw=0.8)
    lanes = [
        sorted({lane for cell in panel.cells if cell.row == row for lane in cell.lanes})
        for row in range(len(panel.tops))
    ]
    least, last = line_in() / pitch_in, len(lanes) - 1
    step = next(step for step in (1, 2, 4, 8) if step >= least or step == 8)
    named = [row for row in range(0, last, step) if panel.tops[last] - panel.tops[row] >= least] + [last]
    axes.set_yticks([panel.tops[row] + 0.5 for row in named], [ranges(lanes[row]) for row in named])
    axes.tick_params(axis="y", length=0, pad=2)
    axes.set(xlim=(0, ACROSS), ylim=(depth, 0))
    axes.spines["left"].set_visible(False)
    below = panel.tops[-1] + 1.4
    axes.spines["bottom"].set_position(("data", below) if below < depth else ("outward", 1.5))


def _box(
    top: float, start: float, end: float, part: float = 0.0, height: float = 1.0
) -> list[tuple[float, float]]:
    """Returns the corners of a cell, or of a stripe of it."""
    low = top + 0.06 + 0.88 * part
    high = low + 0.88 * height
    return [(start, low), (end, low), (end, high), (start, high)]


def ranges(lanes: Sequence[int]) -> str:
    """Returns lanes as text: "0–7", "0, 8", or the first and the last of many that are apart."""
    if len(lanes) > 1 and lanes[-1] - lanes[0] == len(lanes) - 1:
        return f"{lanes[0]}–{lanes[-1]}"
    return ", ".join(map(str, lanes)) if len(lanes) < 3 else f"{lanes[0]} … {lanes[-1]}"


def access(own: pd.DataFrame) -> str:
    """Returns what an access is called: its kind, and the array."""
    first = own.iloc[0]
    kind = str(first["kind"]).replace("_", " ")
    return f"{kind} {_WORDS.get(kind, 'of')} {first['array']}" if first["array"] else kind


def requests(own: pd.DataFrame) -> str:
    """Returns what an access is called, and how many requests it makes if there is room."""
    return access(own) if is_narrow() else f"{access(own)}, {with_unit(own['requests'].iloc[0], 'request')}"


def cost(own: pd.DataFrame, noun: str, drawn: int) -> str:
    """Returns what a request costs on average, and what the one that is drawn costs if that is something else."""
    first = own.iloc[0]
    each = "" if is_narrow() else " per request"
    text = f"{with_unit(first['per_request'], noun)}{each}, ideal {with_unit(first['ideal_per_request'], '')}"
    return text if abs(drawn - first["per_request"]) < _LEAST else f"{text}; drawn: {drawn}"


def distance(own: pd.DataFrame) -> str:
    """Returns how far apart the lanes access; "" if that differs from lane to lane."""
    steps = set(np.diff(own["address"]) / np.diff(own["lane"]))
    if len(steps) != 1:
        return ""
    (step,) = steps
    return f"lanes {tick(step)} B apart" if step else "all lanes at one address"


def widest(data: pd.DataFrame) -> pd.DataFrame:
    """Returns one row per variant of the access whose cost differs the most between them."""
    panels = data.drop_duplicates(["row", "column"])
    costs = panels.groupby("row")["per_request"]
    most = (costs.max() - costs.min() + 1e-6 * costs.max()).idxmax()
    return panels[panels["row"] == most]


def finding(data: pd.DataFrame, title: str, words: Callable[[pd.Series], str]) -> str:
    """Returns what the access that differs the most costs in each variant."""
    own = widest(data)
    costs = {str(row["variant"]): words(row) for _, row in own.iterrows()}
    parts = [
        f"{words} in {listed([n for n in costs if costs[n] == words])}"
        for words in dict.fromkeys(costs.values())
    ]
    return f"{title}: {access(own)}, {', '.join(parts)} · {own['family'].iloc[0]}"
