"""Who writes which element of a two-dimensional output: the box of each block, and the threads of the first one."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from warplog.metrics.accesses import Does, Requests, What
from warplog.metrics.banks import Ints
from warplog.records.requested.accesses import WARP

_NOBODY = -1
_OUTWARD = (min, max, min, max)  # of the sides of a box


@dataclass(frozen=True)
class Matrix:
    """A two-dimensional array in memory, row by row."""

    address: int
    rows: int
    columns: int
    itemsize: int


@dataclass(frozen=True)
class Owners:
    """Who writes a matrix.

    Attributes:
        blocks: those that write to it, in order.
        boxes: of each, the smallest box that holds what it writes: first row, end, first column, end.
        threads: the thread that writes each element in the box of the first block; -1 if it writes none.
    """

    blocks: Sequence[int]
    boxes: Sequence[Sequence[int]]
    threads: Ints


@dataclass
class OwnerFinder:
    """Collects the writes to a matrix."""

    matrix: Matrix
    _boxes: dict[int, list[int]] = field(default_factory=dict)
    _first: int = _NOBODY
    _writes: list[tuple[Ints, Ints]] = field(default_factory=list)

    def add(self, requests: Requests) -> None:
        """Adds the writes among some requests."""
        own = requests.where((requests.what == What.GLOBAL) & (requests.does & Does.WRITE > 0))
        begin, item = self.matrix.address, self.matrix.itemsize
        end = begin + self.matrix.rows * self.matrix.columns * item
        inside = (own.sizes > 0) & (own.addresses >= begin) & (own.addresses + own.sizes <= end)
        request, lane = np.nonzero(inside)
        if not len(request):
            return
        element = (own.addresses[inside] - begin) // item
        last = (own.addresses[inside] - begin + own.sizes[inside] - 1) // item
        block, thread = own.block[request], own.warp[request] * WARP + lane
        self._add_boxes(block, element, last)
        first = int(block.min())
        if self._first == _NOBODY or first < self._first:
            self._first, self._writes = first, []
        mine = block == self._first
        for step in range(int((last - element).max()) + 1):
            wide = mine & (element + step <= last)
            self._writes.append((element[wide] + step, thread[wide]))

    def _add_boxes(self, block: Ints, element: Ints, last: Ints) -> None:
        order = np.argsort(block, kind="stable")
        begins = np.flatnonzero(np.diff(block[order], prepend=-1))
        rows, columns = np.divmod(element[order], self.matrix.columns)
        last_rows, last_columns = np.divmod(last[order], self.matrix.columns)
        own = np.stack(
            [
                np.minimum.reduceat(rows, begins),
                np.maximum.reduceat(last_rows, begins) + 1,
                np.minimum.reduceat(columns, begins),
                np.maximum.reduceat(last_columns, begins) + 1,
            ],
            axis=1,
        )
        for index, box in zip(block[order][begins].tolist(), own.tolist(), strict=True):
            pairs = zip(_OUTWARD, self._boxes.get(index, box), box, strict=True)
            self._boxes[index] = [outward(known, new) for outward, known, new in pairs]

    def owners(self) -> Owners | None:
        """Returns who writes the matrix; None if nobody does."""
        if not self._boxes:
            return None
        blocks = sorted(self._boxes)
        boxes = [self._boxes[block] for block in blocks]
        top, bottom, left, right = boxes[0]
        threads = np.full((bottom - top, right - left), _NOBODY, np.int64)
        for element, thread in self._writes:
            row, column = np.divmod(element, self.matrix.columns)
            threads[row - top, column - left] = thread
        return Owners(blocks, boxes, threads)
