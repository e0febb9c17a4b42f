"""Reads the trace of one launch: which address each lane of each request of its kernels accessed.

A kernel is a head, its mangled name, and its entries, one per lane. The entries of a request follow each other in the
order of the lanes, and each names all active lanes: a request begins where an entry is that of its first active lane.
Where all lanes together access one region (wgmma, bulk copies), the request is a single entry of its first lane.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from warplog.core.errors import WarplogError
from warplog.core.files import open_regular
from warplog.metrics.accesses import Requests, What
from warplog.records.requested.accesses import WARP

MAGIC = b"WLTRACE1"
HEAD = np.dtype(
    [
        ("magic", "S8"),
        ("name_bytes", "<u4"),
        ("padding", "<u4"),
        ("start", "<u8"),
        ("code_bytes", "<u8"),
        ("grid", "<u4", 3),
        ("block", "<u4", 3),
        ("first_block", "<u4"),
        ("blocks", "<u4"),
        ("used", "<u8"),
        ("kept", "<u8"),
    ]
)
ENTRY = np.dtype(
    [
        ("address", "<u8"),
        ("block", "<u4"),
        ("offset", "<u4"),
        ("active", "<u4"),  # mask of the lanes; of a region, its bytes
        ("thread", "<u2"),
        ("size", "u1"),
        ("what", "u1"),
    ]
)
_MOST_KERNELS, _MOST_NAME, _MOST_THREADS, _MOST_SIZE = 1000, 1 << 16, 1024, 32
_MOST_ADDRESS = 1 << 57
_SHARED_WINDOW = 1 << 24  # an address of shared memory has the number of the block in its cluster above it
_REGIONS = [what for what in What if what.is_region]
_MOST_REGION = 1 << 24
_CHUNK = 1 << 17  # entries that are in memory at once
_OF_REQUEST = ("block", "offset", "active", "what")

Array = NDArray[np.void]


@dataclass(frozen=True)
class TracedKernel:
    """One kernel of the launch.

    Attributes:
        grid, block: x, y, z.
        first_block, blocks: which blocks were traced.
        kept: entries in the file; lost: those for which there was no room.
    """

    mangled: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    first_block: int
    blocks: int
    kept: int
    lost: int
    path: Path
    position: int

    def requests(self) -> Iterator[Requests]:
        """Yields the requests of the kernel, some at a time.

        Raises:
            WarplogError: An entry has a value that is not possible, or the entries do not make up whole requests.
        """
        with open_regular(self.path) as file:
            file.seek(self.position)
            left, rest = self.kept, np.empty(0, ENTRY)
            while left:
                more = np.fromfile(file, ENTRY, min(left, _CHUNK))
                if not len(more):
                    raise WarplogError(f"{self.path}: was shortened while it was read; trace again")
                left -= len(more)
                entries = np.concatenate([rest, more])
                self._check(entries)
                begins = self._begins(entries, last=not left)
                end = int(begins[-1]) if left else len(entries)
                yield _requests(entries[:end], begins[begins < end])
                rest = entries[end:]

    def _check(self, entries: Array) -> None:
        """Refuses an entry that cannot be."""
        what = entries["what"] & 15
        lane = (entries["thread"] % WARP).astype(np.uint32)
        region = np.isin(what, _REGIONS)
        blocks = entries["block"].astype(np.int64) - self.first_block
        for wrong, why in (
            (entries["thread"] >= prod(self.block), "of a thread that its block has not"),
            ((blocks < 0) | (blocks >= self.blocks), "of a block that was not traced"),
            ((what < min(What)) | (what > max(What)), "of an unknown kind"),
            (entries["offset"] % 16 != 0, "of an instruction that is not in its place"),
            (entries["size"] > _MOST_SIZE, f"of more than {_MOST_SIZE} bytes"),
            (region & (entries["active"] > _MOST_REGION), f"of more than {_MOST_REGION} bytes"),
            (entries["address"] >= _MOST_ADDRESS, "of an address beyond the address space"),
            (~region & (entries["active"] >> lane & 1 == 0), "of a lane that is not active"),
        ):
            if wrong.any():
                raise self._damaged(f"an access is {why}")

    def _begins(self, entries: Array, *, last: bool) -> NDArray[np.int64]:
        """Returns where each request begins; refuses entries of a request that do not follow each other.

        Args:
            entries: of the kernel, from the begin of a request on.
            last: whether they end with a request.
        """
        lane = (entries["thread"] % WARP).astype(np.uint32)
        region = np.isin(entries["what"] & 15, _REGIONS)
        active = np.where(region, np.uint32(1) << lane, entries["active"])
        rank = np.bitwise_count(active & (np.uint32(1) << lane) - np.uint32(1))
        follows = np.ones(len(entries) - 1, bool)
        for name in _OF_REQUEST:
            follows &= entries[name][1:] == entries[name][:-1]
        follows &= entries["thread"][1:] // WARP == entries["thread"][:-1] // WARP
        follows &= rank[1:] == rank[:-1] + 1
        complete = rank + 1 == np.bitwise_count(active)
        whole = np.where(rank[1:] == 0, complete[:-1], follows).all() and (complete[-1] or not last)
        if rank[0] or not whole:
            raise self._damaged("the accesses of a request do not follow each other")
        return np.flatnonzero(rank == 0)

    def _damaged(self, why: str) -> WarplogError:
        return WarplogError(f"{self.path}: kernel {self.mangled[:80]}: {why}; trace again")


def read(path: Path) -> list[TracedKernel]:
    """Returns the kernels in a trace, whose entries are read later.

    Raises:
        WarplogError: The file cannot be read, is truncated, or has a value that is not possible.
    """
    kernels: list[TracedKernel] = []
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        while (position := file.tell()) < size:
            if len(kernels) == _MOST_KERNELS:
                raise WarplogError(f"{path}: more than {_MOST_KERNELS} kernels in one launch")
            try:
                kernel = _kernel(path, file)
            except ValueError as error:
                raise WarplogError(f"{path}: at byte {position}: {error}; trace again") from None
            if kernel.position + kernel.kept * ENTRY.itemsize > size:
                where = f"among the accesses of {kernel.mangled[:80]}"
                raise WarplogError(f"{path}: is truncated: it ends {where}; trace again")
            file.seek(kernel.position + kernel.kept * ENTRY.itemsize)
            kernels.append(kernel)
    if not kernels:
        raise WarplogError(f"{path}: has no kernel; the launch ran none, or the tracer did not see it")
    return kernels


def _kernel(path: Path, file: BufferedReader) -> TracedKernel:
    """Reads a head and a name.

    Raises:
        ValueError: They are truncated, or have a value that is not possible.
    """
    data = file.read(HEAD.itemsize)
    if len(data) < HEAD.itemsize or data[: len(MAGIC)] != MAGIC:
        raise ValueError(
            "not the head of a kernel" if len(data) == HEAD.itemsize else "the head is truncated"
        )
    head = np.frombuffer(data, HEAD)[0]
    grid, block = tuple(head["grid"].tolist()), tuple(head["block"].tolist())
    name_bytes, first, blocks, used, kept = (
        int(head[name]) for name in ("name_bytes", "first_block", "blocks", "used", "kept")
    )
    if name_bytes > _MOST_NAME or len(name := file.read(name_bytes)) < name_bytes:
        raise ValueError("the name of the kernel is truncated")
    mangled = name.decode(errors="replace")
    if not mangled or not mangled.isprintable():
        raise ValueError("the name of the kernel is not readable")
    if min(grid) < 1 or min(block) < 1 or prod(block) > _MOST_THREADS:
        raise ValueError(f"a grid of {grid} blocks of {block} threads is not possible")
    if blocks < 1 or first + blocks > prod(grid):
        raise ValueError(f"blocks {first} to {first + blocks - 1} of {prod(grid)} are not possible")
    if kept > used:
        raise ValueError(f"{kept} accesses of {used} are not possible")
    return TracedKernel(
        mangled=mangled,
        grid=grid,
        block=block,
        first_block=first,
        blocks=blocks,
        kept=kept,
        lost=used - kept,
        path=path,
        position=file.tell(),
    )


def _requests(entries: Array, begins: NDArray[np.int64]) -> Requests:
    """Returns the requests that begin at these places of the entries."""
    first = entries[begins]
    request = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(entries)))
    lane = entries["thread"] % WARP
    addresses = np.zeros((len(begins), WARP), np.int64)
    sizes = np.zeros((len(begins), WARP), np.int64)
    what = (first["what"] & 15).astype(np.int64)
    region = np.isin(what, _REGIONS)[request]
    addresses[request, lane] = entries["address"]
    sizes[request, lane] = np.where(region, entries["active"], entries["size"])
    shared = np.isin(what, [one for one in What if one.space == "shared"])
    addresses[shared] %= _SHARED_WINDOW
    return Requests(
        block=first["block"].astype(np.int64),
        warp=first["thread"].astype(np.int64) // WARP,
        offset=first["offset"].astype(np.int64),
        what=what,
        does=(first["what"] >> 4).astype(np.int64),
        addresses=addresses,
        sizes=sizes,
    )
