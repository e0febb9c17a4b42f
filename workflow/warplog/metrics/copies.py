"""Sectors and wavefronts of asynchronous copies from global to shared memory, which depend on both addresses of a lane.

A copy moves pieces that lie in one sector of 32 bytes on either side, so that a target that is not aligned like its
source has more of them. A wavefront moves pieces from one cache line of 128 bytes to one row of the 32 banks, at most
one from each sector and to each sector.
"""

import numpy as np

from warplog.metrics.banks import Flags, Ints
from warplog.records.requested.accesses import LINE, SECTOR

_OF_LINE = LINE // SECTOR


def pieces(sources: Ints, targets: Ints, active: Flags) -> tuple[Ints, Ints]:
    """Returns the pieces and the wavefronts of requests, given both addresses by lane, and which lanes read."""
    source, target = sources // SECTOR, targets // SECTOR
    of_line, of_row = _equal(source // _OF_LINE), _equal(target // _OF_LINE)
    same_source, same_target = _equal(source), _equal(target)
    before = np.tri(sources.shape[1], k=-1, dtype=bool)
    own = active & ~(same_source & same_target & before & active[:, None, :]).any(2)
    others = own[:, None, :]
    most = np.maximum(
        np.count_nonzero(same_source & of_row & others, axis=2),
        np.count_nonzero(same_target & of_line & others, axis=2),
    )
    together = of_line & of_row & others
    first = own & ~(together & before).any(2)
    wavefronts = np.where(first, np.where(together, most[:, None, :], 0).max(2), 0).sum(1)
    return own.sum(1), wavefronts


def _equal(values: Ints) -> Flags:
    """Returns which pairs of lanes of a row have equal values."""
    equal: Flags = values[:, :, None] == values[:, None, :]
    return equal
