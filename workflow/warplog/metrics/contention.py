"""Counts the atomic operations that one address receives in a launch, by instruction and of a kernel."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from warplog.metrics.accesses import Does, Requests, What
from warplog.metrics.banks import Ints
from warplog.records.requested.accesses import Space

MOST_ADDRESSES = 1 << 19  # in memory, of all instructions of a kernel


class Contention(NamedTuple):
    """The most operations on one address, each by a lane, and the most of a single request."""

    operations: int
    lanes: int


class ContentionCounter:
    """Collects the atomics of one kernel. Shared memory of each block has addresses of its own.

    Without room for all addresses, the instructions with the most of them are given up. So are those whose addresses
    the trace does not tell: of shared memory of other blocks, and of bulk reductions.
    """

    def __init__(self) -> None:
        """Has no atomics yet."""
        self._rows = [np.empty((0, 4), np.int64)]  # place, address, operations, lanes
        self._given_up: set[int] = (
            set()
        )  # places: twice the offset of the instruction, and 1 for shared memory

    def add(self, requests: Requests) -> None:
        """Adds the atomics among some requests."""
        atomic = requests.where(requests.does & Does.ATOMIC > 0)
        by_lane = np.isin(atomic.what, (What.GLOBAL, What.SHARED))
        for offset, what in np.unique(np.stack([atomic.offset, atomic.what])[:, ~by_lane], axis=1).T.tolist():
            self._given_up.add(offset * 2 + (What(what).space == "shared"))
        places = atomic.offset * 2 + (atomic.what == What.SHARED)
        chosen = by_lane & ~np.isin(places, list(self._given_up))
        own, places = atomic.where(chosen), places[chosen]
        request, lane = np.nonzero(own.sizes > 0)
        address = own.addresses[request, lane] + np.where(places % 2, own.block << 24, 0)[request]
        by_request = _merged(np.stack([request, address, *np.ones((2, len(request)), np.int64)], axis=1))
        rows = np.column_stack([places[by_request[:, 0]], *by_request.T[[1, 2, 2]]])
        self._rows.append(_merged(rows))
        if sum(map(len, self._rows)) > 2 * MOST_ADDRESSES:
            self._rows = [self._kept()]

    def by_instruction(self) -> Mapping[tuple[int, Space], Contention]:
        """Returns the contention of each instruction, by offset and memory, of which it is known."""
        rows = self._kept()
        begins = np.flatnonzero(np.diff(rows[:, 0], prepend=-1))
        most = np.maximum.reduceat(rows[:, 2:], begins).tolist() if len(rows) else []
        places = rows[begins, 0].tolist()
        return {
            (place // 2, "shared" if place % 2 else "global"): Contention(*of)
            for place, of in zip(places, most, strict=True)
        }

    def of_kernel(self) -> int | None:
        """Returns the most operations on one address of global memory; None without any, or if it is not known."""
        rows = self._kept()
        rows = rows[rows[:, 0] % 2 == 0]
        if not len(rows) or any(place % 2 == 0 for place in self._given_up):
            return None
        rows[:, 0] = 0
        return int(_merged(rows)[:, 2].max())

    def _kept(self) -> Ints:
        """Returns a row for each place and address."""
        rows = _merged(np.concatenate(self._rows))
        rows = rows[~np.isin(rows[:, 0], list(self._given_up))]
        places, addresses = np.unique(rows[:, 0], return_counts=True)
        fewest = np.argsort(addresses, kind="stable")
        beyond = places[fewest[np.cumsum(addresses[fewest]) > MOST_ADDRESSES]]
        self._given_up |= set(beyond.tolist())
        return rows[~np.isin(rows[:, 0], beyond)]


def _merged(rows: Ints) -> Ints:
    """Returns a row for each pair of the first two columns: the sum of the third, and the largest of the fourth."""
    if not len(rows):
        return rows
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    begins = np.flatnonzero(np.any(np.diff(rows[:, :2], axis=0, prepend=-1), axis=1))
    sums, most = np.add.reduceat(rows[:, 2], begins), np.maximum.reduceat(rows[:, 3], begins)
    return np.column_stack([rows[begins, :2], sums, most])
