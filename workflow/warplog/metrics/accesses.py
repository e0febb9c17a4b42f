"""Counts traced memory accesses by instruction: requests, lanes, bytes, sectors, and wavefronts of shared memory."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag

import numpy as np

from warplog.metrics.banks import WORD, Flags, Ints, wavefronts
from warplog.metrics.copies import pieces
from warplog.records.requested.accesses import LINE, SECTOR, WARP, Kind, Request, Space

_WARPGROUP = 4
_WAVEFRONT = 128  # bytes, without conflicts
_LANES_OF_SECTOR = SECTOR // WORD  # of local memory, where the words of neighbouring lanes lie side by side
_NO_ARRAY = 1 << 31
_MOST_WAITING = 1 << 14  # sources of copies without a target so far, which only a damaged trace has
_AT_ONCE = 4096  # copies, each of which takes some KiB
_MOST_COST = 4096  # requests that cost more count as equal when the median is looked for
_NOWHERE = np.iinfo(np.int64).max


class What(IntEnum):
    """What an entry of a trace is."""

    GLOBAL = 1
    SHARED = 2
    LOCAL = 3
    LDMATRIX = 4
    STMATRIX = 5
    ASYNC_FROM = 6
    ASYNC_TO = 7
    WGMMA_A = 8
    WGMMA_B = 9
    BULK_GLOBAL = 10
    BULK_SHARED = 11
    REMOTE = 12

    @property
    def space(self) -> Space:
        """The memory that it accesses."""
        if self in (What.GLOBAL, What.ASYNC_FROM, What.BULK_GLOBAL):
            return "global"
        return "local" if self == What.LOCAL else "shared"

    @property
    def is_region(self) -> bool:
        """Whether all lanes together access one region, which the trace has as an access of a single lane."""
        return What.WGMMA_A <= self <= What.BULK_SHARED


class Does(IntFlag):
    """What an access does."""

    READ = 1
    WRITE = 2
    ATOMIC = 4
    PREFETCH = 8


# What counts as one access of an instruction: both operands of wgmma, and shared memory of any block of a cluster.
_TOGETHER = {What.WGMMA_A: What.WGMMA_B, What.REMOTE: What.SHARED}
_KINDS: Mapping[What, Kind] = {
    What.LDMATRIX: "ldmatrix",
    What.STMATRIX: "stmatrix",
    What.ASYNC_FROM: "async_copy",
    What.ASYNC_TO: "async_copy",
    What.WGMMA_B: "wgmma",
    What.BULK_GLOBAL: "bulk_copy",
    What.BULK_SHARED: "bulk_copy",
}


@dataclass(frozen=True)
class Requests:
    """Requests of warps; each array has an entry per request, `addresses` and `sizes` one per request and lane.

    Attributes:
        offset: of the instruction, in bytes from the start of the kernel.
        what: a value of `What`; does: values of `Does`.
        sizes: bytes that a lane accesses; 0 if it takes no part.
    """

    block: Ints
    warp: Ints
    offset: Ints
    what: Ints
    does: Ints
    addresses: Ints
    sizes: Ints

    def __len__(self) -> int:
        """Returns the number of requests."""
        return len(self.offset)

    def where(self, chosen: Flags | Ints) -> "Requests":
        """Returns some of the requests."""
        return Requests(**{name: values[chosen] for name, values in vars(self).items()})

    def before(self, others: "Requests") -> "Requests":
        """Returns these requests, and others after them."""
        return Requests(
            **{name: np.concatenate([values, getattr(others, name)]) for name, values in vars(self).items()}
        )


@dataclass(frozen=True)
class Tally:
    """What all requests of an instruction in one space did.

    Attributes:
        distinct_bytes: of each request, summed.
        array: index of the array that all addresses belong to; None for several, or for memory of no array.
        lines, sectors, sectors_ideal: 0 for shared memory, lines also for local memory.
        wavefronts, wavefronts_ideal, ways: 0 for other memory and for bulk copies; of wgmma, as if without conflicts.
        example: a request whose number of sectors or wavefronts is the median of all, with absolute addresses.
    """

    offset: int
    what: What
    does: Does
    requests: int
    lanes: int
    bytes: int
    distinct_bytes: int
    lines: int
    sectors: int
    sectors_ideal: int
    wavefronts: int
    wavefronts_ideal: int
    ways: int
    array: int | None
    example: Request

    @property
    def kind(self) -> Kind:
        """What the instruction is, as records name it."""
        if self.what in _KINDS:
            return _KINDS[self.what]
        if self.does & Does.ATOMIC:
            return "atomic"
        return "store" if self.does & Does.WRITE else "load"


_SUMS = (
    *("requests", "lanes", "bytes", "distinct_bytes"),
    *("lines", "sectors", "sectors_ideal", "wavefronts", "wavefronts_ideal"),
)


@dataclass
class _Sums:
    """The sums of an instruction so far; `examples` has how often each cost occurs, and the first request with it."""

    sums: Ints = field(default_factory=lambda: np.zeros(len(_SUMS), np.int64))
    does: int = 0
    ways: int = 0
    first_array: int = _NO_ARRAY
    last_array: int = -1
    examples: dict[int, tuple[int, Request]] = field(default_factory=dict)

    def median(self) -> Request:
        """Returns a request whose cost is the lower median of all."""
        left = (int(self.sums[0]) + 1) // 2
        for cost in sorted(self.examples):
            count, example = self.examples[cost]
            left -= count
            if left <= 0:
                break
        return example


class Counter:
    """Counts the requests of one kernel by instruction."""

    def __init__(self, arrays: Sequence[range], merging: Sequence[int] = ()) -> None:
        """Counts nothing yet.

        Args:
            arrays: the addresses of each array of the launch.
            merging: offsets of atomics that add up the lanes of a warp with the same address first.
        """
        self._order = sorted(range(len(arrays)), key=lambda index: arrays[index].start)
        self._starts = np.array([arrays[index].start for index in self._order], np.int64)
        self._stops = np.array([arrays[index].stop for index in self._order], np.int64)
        self._merging = merging
        self._waiting: Requests | None = None
        self._of: dict[tuple[int, int], _Sums] = {}

    def __len__(self) -> int:
        """Returns the number of instructions so far."""
        return len(self._of)

    def add(self, requests: Requests) -> None:
        """Counts some more requests.

        The source of an asynchronous copy waits for its target, which may be among the next ones.
        """
        self._count(self._waiting.before(requests) if self._waiting else requests, _MOST_WAITING)

    def _count(self, requests: Requests, most_waiting: int) -> None:
        copied, waits = _copied(requests)
        waits &= np.count_nonzero(waits) <= most_waiting
        self._waiting = requests.where(waits)
        touches = (requests.sizes > 0).any(1) & (requests.does & (Does.READ | Does.WRITE) > 0) & ~waits
        for what in What:
            chosen = np.flatnonzero(touches & (requests.what == what))
            if len(chosen):
                self._add(what, requests.where(chosen), copied[chosen])

    def tallies(self) -> Iterator[Tally]:
        """Yields the instructions in order; no more requests can be added."""
        if self._waiting:
            self._count(self._waiting, 0)
        for (offset, what), found in sorted(self._of.items()):
            if not found.sums[0]:
                continue  # only the first operand of wgmma, which no trace of the tracer has
            array = self._order[found.first_array] if 0 <= found.first_array == found.last_array else None
            yield Tally(
                offset=offset,
                what=What(what),
                does=Does(found.does),
                **dict(zip(_SUMS, found.sums.tolist(), strict=True)),
                ways=found.ways,
                array=array,
                example=found.median(),
            )

    def _add(self, what: What, requests: Requests, copied: Ints) -> None:
        order = np.argsort(requests.offset, kind="stable")
        requests = requests.where(order)
        active = requests.sizes > 0
        turns = (requests.does & Does.ATOMIC > 0) & ~np.isin(requests.offset, self._merging)
        costs = _costs(what, requests, turns)
        if what in (What.ASYNC_FROM, What.ASYNC_TO):
            column = costs[:, _SUMS.index("sectors" if what == What.ASYNC_FROM else "wavefronts")]
            np.maximum(column, copied[order], out=column)
        cost = np.minimum(
            costs[:, _SUMS.index("wavefronts" if what.space == "shared" else "sectors")], _MOST_COST
        )
        places = self._arrays(requests.addresses, requests.sizes)
        first = np.where(active, places, _NO_ARRAY).min(1)
        last = np.where(active, places, -1).max(1)
        begins = np.flatnonzero(np.diff(requests.offset, prepend=-1))
        for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(requests)], strict=True):
            key = int(requests.offset[begin]), _TOGETHER.get(what, what).value
            found = self._of.setdefault(key, _Sums())
            found.sums += costs[begin:end, :-1].sum(0)
            found.does |= int(np.bitwise_or.reduce(requests.does[begin:end]))
            found.ways = max(found.ways, int(costs[begin:end, -1].max()))
            found.first_array = min(found.first_array, int(first[begin:end].min()))
            found.last_array = max(found.last_array, int(last[begin:end].max()))
            values, examples, counts = np.unique(cost[begin:end], return_index=True, return_counts=True)
            for value, example, count in zip(
                values.tolist(), examples.tolist(), counts.tolist(), strict=True
            ):
                before, known = found.examples.get(value) or (0, _example(requests, begin + example))
                found.examples[value] = before + count, known

    def _arrays(self, addresses: Ints, sizes: Ints) -> Ints:
        """Returns the place in order of the array that each address belongs to; -1 if it belongs to none."""
        places = np.searchsorted(self._starts, addresses, "right") - 1
        if not len(self._stops):
            return places
        return np.where(addresses + sizes <= self._stops[places], places, -1)


def _example(requests: Requests, index: int) -> Request:
    sizes = requests.sizes[index]
    addresses = np.where(sizes > 0, requests.addresses[index], -1)
    return Request(
        block=int(requests.block[index]),
        warp=int(requests.warp[index]),
        size_bytes=int(sizes.max()),
        addresses=tuple(addresses.tolist()),
    )


def _copied(requests: Requests) -> tuple[Ints, Flags]:
    """Returns pieces of sources and wavefronts of targets of asynchronous copies, and which sources have no target."""
    copied, is_source = np.zeros(len(requests), np.int64), requests.what == What.ASYNC_FROM
    own = np.flatnonzero(is_source | (requests.what == What.ASYNC_TO))
    own = own[np.lexsort((requests.warp[own], requests.block[own], requests.offset[own]))]
    follow = is_source[own[:-1]] & ~is_source[own[1:]]
    for name in ("offset", "block", "warp"):
        follow &= getattr(requests, name)[own[:-1]] == getattr(requests, name)[own[1:]]
    sources, targets = own[:-1][follow], own[1:][follow]
    reads = requests.sizes[sources] > 0
    for first in range(0, len(sources), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        both = requests.addresses[sources[some]], requests.addresses[targets[some]]
        copied[sources[some]], copied[targets[some]] = pieces(*both, reads[some])
    is_source[sources] = False
    return copied, is_source


def _costs(what: What, requests: Requests, turns: Flags) -> Ints:
    """Returns the numbers of _SUMS and the ways of each request; `turns`: whether equal words are not read at once."""
    addresses, sizes = requests.addresses, requests.sizes
    one = np.full(len(requests), what != What.WGMMA_A, np.int64)
    lanes = one * np.count_nonzero(sizes, axis=1)
    if what in (What.WGMMA_A, What.WGMMA_B):  # each warp of a warpgroup has the bytes of all four
        sizes = np.where(requests.warp[:, None] % _WARPGROUP == 0, sizes, 0)
    active = sizes > 0
    bytes_, distinct_bytes = sizes.sum(1), _distinct_bytes(addresses, active, sizes)
    lines, sectors, sectors_ideal, taken, ideal, ways = np.zeros((6, len(requests)), np.int64)
    if what == What.LOCAL:
        distinct_bytes, sectors = bytes_, _local_sectors(addresses, active, sizes)
    elif what.space == "global":
        lines, sectors = (_blocks(step, addresses, active, sizes) for step in (LINE, SECTOR))
    if what.space != "shared":
        sectors_ideal = -(-distinct_bytes // SECTOR)
    elif not what.is_region and what != What.REMOTE:  # whose banks are those of another SM
        taken, ideal, ways = _wavefronts(what, requests, active, turns)
    if what in (What.WGMMA_A, What.WGMMA_B):
        taken = ideal = bytes_ // _WAVEFRONT
        ways = np.ones_like(bytes_)
    return np.stack(
        [one, lanes, bytes_, distinct_bytes, lines, sectors, sectors_ideal, taken, ideal, ways], axis=1
    )


def _wavefronts(what: What, requests: Requests, active: Flags, turns: Flags) -> tuple[Ints, Ints, Ints]:
    """Returns the wavefronts of each request, without conflicts, and its ways."""
    found = np.zeros((3, len(requests)), np.int64)
    widest = requests.sizes.max(1)
    for size, is_atomic in np.unique(np.stack([widest, turns], axis=1), axis=0).tolist():
        own = np.flatnonzero((widest == size) & (turns == is_atomic))
        found[:, own] = wavefronts(
            requests.addresses[own],
            active[own],
            size,
            matrices=what in (What.LDMATRIX, What.STMATRIX),
            atomic=bool(is_atomic),
        )
    return found[0], found[1], found[2]


def _blocks(step: int, addresses: Ints, active: Flags, sizes: Ints) -> Ints:
    """Returns the number of distinct blocks of `step` bytes that each request touches; a region may have many."""
    first, last = addresses // step, (addresses + np.maximum(sizes, 1) - 1) // step
    between = np.where(active, np.maximum(last - first - 1, 0), 0).sum(1)
    touched: Ints = _distinct(np.concatenate([first, last], axis=1), np.tile(active, 2)) + between
    return touched


def _local_sectors(addresses: Ints, active: Flags, sizes: Ints) -> Ints:
    """Returns the same for local memory, where the same word of 32 lanes lies in four sectors."""
    group = np.arange(WARP) // _LANES_OF_SECTOR
    words = [
        ((addresses // WORD + word) * (WARP // _LANES_OF_SECTOR) + group, active & (sizes > word * WORD))
        for word in range(int(sizes.max(initial=1) + WORD - 1) // WORD)
    ]
    return _distinct(
        np.concatenate([w for w, _ in words], axis=1), np.concatenate([a for _, a in words], axis=1)
    )


def _distinct_bytes(addresses: Ints, active: Flags, sizes: Ints) -> Ints:
    """Returns the number of bytes that each request covers."""
    order = np.where(active, addresses, _NOWHERE).argsort(axis=1)
    begins, lengths = np.take_along_axis(addresses, order, 1), np.take_along_axis(sizes, order, 1)
    ends = np.maximum.accumulate(begins + lengths, axis=1)
    before = np.concatenate([begins[:, :1], ends[:, :-1]], axis=1)
    own = begins + lengths - np.maximum(begins, before)
    covered: Ints = np.where(lengths > 0, np.maximum(own, 0), 0).sum(1)
    return covered


def _distinct(values: Ints, active: Flags) -> Ints:
    """Returns the number of distinct values in each row."""
    ordered = np.where(active, values, _NOWHERE)
    ordered.sort(axis=1)
    new = ordered != _NOWHERE
    new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    counts: Ints = np.count_nonzero(new, axis=1)
    return counts
