"""Which sectors of memory do the lanes of a warp touch with one request?"""

import pandas as pd
from matplotlib.figure import Figure

from warplog.core.numbers import with_unit
from warplog.figures.shared.labels import is_narrow
from warplog.figures.shared.style import Look, styled
from warplog.figures.traced import lanes
from warplog.figures.traced.seen import cases
from warplog.records.requested.accesses import LINE, SECTOR
from warplog.tables.view import FigureTables

NEEDS = ("accesses",)
TITLE = "Lanes over sectors of memory"
NOTE = (
    "traced addresses of one request, a median one of its instruction; each row is a line of 128 bytes of memory, grey "
    "are its sectors of 32 bytes that are moved, in colour the bytes that a lane asks for, from lane 0 (green) to 31 "
    "(violet), named on the left; case {case}"
)
_WORD = LINE // lanes.ACROSS


def data(tables: FigureTables, variant: str = "") -> pd.DataFrame:
    """Returns one row per lane of the requests to show, of a variant and its parent or of the most different ones.

    `per_request` and `ideal_per_request` are sectors, the mean over all requests.
    """
    return lanes.compared(tables, "global", "sectors", variant)


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws the lines of memory that each request touches, a column per variant."""
    heading = lanes.finding(data, TITLE, _sectors), NOTE.format(case=cases(data))
    ticks = {place: str(place * _WORD) for place in range(0, lanes.ACROSS + 1, SECTOR // _WORD)}
    return lanes.draw(data, look, heading, _panel, _about, (ticks, "byte of the line"))


def _sectors(first: pd.Series) -> str:
    return f"{with_unit(first['per_request'], 'sector')} (ideal {with_unit(first['ideal_per_request'], '')})"


def _about(own: pd.DataFrame) -> list[str]:
    name, cost, distance = (
        lanes.requests(own),
        lanes.cost(own, "sector", len(_panel(own).moved)),
        lanes.distance(own),
    )
    if is_narrow():
        return list(filter(None, (name, cost, distance)))
    return [", ".join(filter(None, (name, distance))), cost]


def _panel(own: pd.DataFrame) -> lanes.Panel:
    pieces = []
    for lane, address, size in own[["lane", "address", "size_bytes"]].itertuples(index=False):
        end = address + size
        while address < end:
            upto = min(end, (address // SECTOR + 1) * SECTOR)
            pieces.append((address, upto, lane))
            address = upto
    lines = sorted({start // LINE for start, _, _ in pieces})
    rows = {line: row for row, line in enumerate(lines)}

    def place(start: int, end: int) -> tuple[int, float, float]:
        line = start // LINE
        return rows[line], (start - line * LINE) / _WORD, (end - line * LINE) / _WORD

    sectors = {start // SECTOR * SECTOR for start, _, _ in pieces}
    cells = lanes.by_place((place(start, end), lane) for start, end, lane in pieces)
    moved = [place(start, start + SECTOR) for start in sorted(sectors)]
    return lanes.Panel(range(len(lines)), cells, moved, range(SECTOR // _WORD, lanes.ACROSS, SECTOR // _WORD))
