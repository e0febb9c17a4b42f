"""How many distinct bytes of global memory blocks read, each by itself and those of a wave together."""

from dataclasses import dataclass, field

import numpy as np

from warplog.metrics.accesses import Does, Requests, What
from warplog.metrics.banks import Ints
from warplog.records.requested.accesses import SECTOR, Reuse

_SECTORS = 1 << 44  # of an address space of 49 bits
_MOST_BLOCKS = 1 << 19  # with which a sector and a block fit into 63 bits


@dataclass
class ReuseCounter:
    """Collects what the blocks from `first_block` on read."""

    first_block: int
    blocks: int
    _read: list[Ints] = field(default_factory=list)

    def add(self, requests: Requests) -> None:
        """Adds the reads among some requests."""
        if self.blocks > _MOST_BLOCKS:
            return
        whats = (What.GLOBAL, What.ASYNC_FROM)
        own = requests.where(np.isin(requests.what, whats) & (requests.does & Does.READ > 0))
        block = np.broadcast_to((own.block - self.first_block)[:, None], own.sizes.shape)[own.sizes > 0]
        sector = own.addresses[own.sizes > 0] // SECTOR % _SECTORS
        self._read.append(np.unique(block * _SECTORS + sector))
        if sum(map(len, self._read[1:])) > len(self._read[0]):
            self._read = [np.unique(np.concatenate(self._read))]

    def reuse(self, wave: int) -> Reuse | None:
        """Returns the reuse in the first `wave` of the blocks; None if no block reads, or there are too many."""
        read = np.unique(np.concatenate([*self._read, np.empty(0, np.int64)]))
        if not len(read) or wave < 1:
            return None
        block, sector = np.divmod(read, _SECTORS)
        wave = min(wave, self.blocks)
        of_blocks = np.bincount(block, minlength=self.blocks) * SECTOR
        return Reuse(
            block_bytes=int(np.median(of_blocks)),
            wave_blocks=wave,
            wave_bytes=len(np.unique(sector[block < wave])) * SECTOR,
            wave_bytes_of_blocks=int(of_blocks[:wave].sum()),
        )
