"""Which banks of shared memory do the lanes of a warp touch in each pass of one request?"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from warplog.figures.shared.style import Look, styled
from warplog.figures.traced import lanes
from warplog.figures.traced.seen import cases
from warplog.metrics import banks
from warplog.records.requested.accesses import WARP
from warplog.tables.view import FigureTables

NEEDS = ("accesses",)
TITLE = "Lanes over banks of shared memory"
NOTE = (
    "traced addresses of one request, a median one of its instruction; each row is a wavefront, which gives up to one "
    "word of 4 bytes of each of the 32 banks, grey are banks that give none, in colour the words that a lane asks for, "
    "from lane 0 (green) to 31 (violet), named on the left; which word of a bank comes first is not known; case {case}"
)

_GAP = 0.7  # between two passes, in heights of a row


def data(tables: FigureTables, variant: str = "") -> pd.DataFrame:
    """Returns one row per lane and word of the requests to show, of a variant and its parent or of the most different.

    `wavefront` and `bank` are the place of the word; `per_request` and `ideal_per_request` are wavefronts, the mean
    over all requests of the instruction.
    """
    rows = lanes.compared(tables, "shared", "wavefronts", variant)
    pieces = [words(own) for _, own in rows.groupby(["row", "column"], sort=False)]
    return pd.concat(pieces, ignore_index=True) if pieces else rows


def words(own: pd.DataFrame) -> pd.DataFrame:
    """Returns a row per lane and word, with bank and wavefront: a pass takes as many as its fullest bank has words."""
    size, kind = int(own["size_bytes"].iloc[0]), str(own["kind"].iloc[0])
    address = dict(zip(own["lane"], own["address"], strict=True))
    rows, first = [], 0
    for number, passed in enumerate(_passes(address, size, kind)):
        depth: dict[int, list[tuple[int, int]]] = {}
        for lane in passed:
            for word in range(address[lane] // banks.WORD, -(-(address[lane] + size) // banks.WORD)):
                of_bank = depth.setdefault(word % banks.BANKS, [])
                turn = word, lane if kind == "atomic" else 0  # each lane has one, even at the same word
                of_bank += [turn] if turn not in of_bank else []
                rows.append((lane, number, word % banks.BANKS, first + of_bank.index(turn)))
        first += max(map(len, depth.values()))
    return own.merge(pd.DataFrame(rows, columns=["lane", "pass", "bank", "wavefront"]), on="lane")


def _passes(address: dict[int, int], size: int, kind: str) -> list[list[int]]:
    """Returns the lanes of each pass over the request: of the whole warp, or of its halves or quarters."""
    width = WARP // banks.passes_of(size)
    about = {"matrices": "matrix" in kind, "atomic": kind == "atomic"}
    groups = [[lane for lane in address if lane // width == n] for n in range(WARP // width)]
    passes: list[list[int]] = []
    for even, odd in zip(groups[::2], groups[1::2] or [[]], strict=True):
        both = np.array([[address.get(lane, -1) for lane in range(WARP)]])
        active = np.isin(np.arange(WARP), even + odd)[None]
        is_one = even and odd and banks.wavefronts(both, active, size, **about).taken[0] == 1
        passes += [even + odd] if is_one else [even, odd]
    return list(filter(None, passes))


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws the wavefronts of each request, a column per variant."""
    heading = lanes.finding(data, TITLE, _ways), NOTE.format(case=cases(data))
    ticks = {place: str(place) for place in range(0, lanes.ACROSS, 8)}
    return lanes.draw(data, look, heading, _panel, _about, (ticks, "bank"))


def _ways(first: pd.Series) -> str:
    return f"{first['ways']:.0f}-way conflict" if first["ways"] > 1 else "no conflict"


def _about(own: pd.DataFrame) -> tuple[str, str]:
    return f"{lanes.requests(own)}, {_ways(own.iloc[0])}", lanes.cost(
        own, "wavefront", own["wavefront"].nunique()
    )


def _panel(own: pd.DataFrame) -> lanes.Panel:
    columns = own[["lane", "wavefront", "bank", "address", "size_bytes"]]
    pieces = []
    for lane, wavefront, bank, address, size in columns.itertuples(index=False):
        start = bank + (address % banks.WORD / banks.WORD if size < banks.WORD else 0)
        pieces.append(((int(wavefront), float(start), start + min(size / banks.WORD, 1.0)), int(lane)))
    passes = own.groupby("wavefront")["pass"].min()
    tops = [wavefront + _GAP * number for wavefront, number in passes.items()]
    return lanes.Panel(tops, lanes.by_place(pieces), [(row, 0, lanes.ACROSS) for row in range(len(tops))])
