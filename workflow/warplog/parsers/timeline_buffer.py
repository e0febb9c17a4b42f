"""Reads the buffer that the marks of kernels/include/timeline.cuh write, and aligns the clocks of the SMs."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warplog.core.errors import WarplogError
from warplog.metrics.tracks import REGIONS, Track, by_sm, slots

# The structures of timeline.cuh.
HEAD = np.dtype([(name, "<u4") for name in ("kernels", "blocks", "threads", "lost_warps")])
WARP = np.dtype(
    [(name, "<u8") for name in ("begin_clock", "end_clock", "begin_ns", "end_ns")]
    + [(name, "<u4") for name in ("sm", "block", "warp", "events")]
)
EVENT = np.dtype([(name, "<u4") for name in ("clock", "region")])
_LOW = 1 << 32

Array = NDArray[np.void]


@dataclass(frozen=True)
class Launch:
    """One launch of a marked kernel.

    Attributes:
        tracks: the warps that have a region, by SM.
        origin_us: when the first warp starts on each SM, since the launch's first warp.
        sm_mhz: clocks per microsecond, from both timers over the whole launch.
        step_ns: the step in which globaltimer advances: SMs are aligned to within one step; 0 if unknown.
        span_us: from the start of the first warp to the end of the last one.
        blocks, threads: size of the grid, and of a block.
        lost_warps: warps without a record, since the buffer has no room for them.
    """

    tracks: Mapping[int, list[Track]]
    origin_us: Mapping[int, float]
    sm_mhz: float
    step_ns: int
    span_us: float
    blocks: int
    threads: int
    lost_warps: int

    @property
    def events(self) -> int:
        """Number of events that were written."""
        return sum(len(track.starts) for own in self.tracks.values() for track in own)

    @property
    def lost_events(self) -> int:
        """Number of events that the buffer had no room for."""
        return sum(track.lost for own in self.tracks.values() for track in own)


def read(head: Array, warps: Array, events: Array) -> Launch:
    """Returns the launch that a buffer holds.

    Args:
        head: one element of HEAD.
        warps: elements of WARP; those of warps that did not run are zero.
        events: elements of EVENT, as many for each element of `warps`.

    Raises:
        WarplogError: No marked kernel ran or several did, a warp did not end, its events are not in order, or a region
            is unknown.
    """
    if int(head["kernels"]) != 1:
        raise WarplogError(
            f"the launch ran {int(head['kernels'])} marked kernels, a timeline shows one; mark a single kernel,"
            " with TIMELINE_TRACK also in the first warp of the first block"
        )
    most = len(events) // max(len(warps), 1)
    ran = np.flatnonzero(warps["begin_clock"])
    own = warps[ran]
    if len(own) == 0 or (own["end_clock"] < own["begin_clock"]).any():
        raise WarplogError("a warp of the marked kernel did not reach the end of its TIMELINE_TRACK")
    first = {int(sm): int(own["begin_clock"][own["sm"] == sm].min()) for sm in np.unique(own["sm"])}
    mhz, offset_us = _alignment(own, first)
    place = _slots(own)
    tracks = [
        _track(row, first[int(row["sm"])], place, events[index * most : (index + 1) * most])
        for index, row in zip(ran.tolist(), own, strict=True)
        if row["events"]
    ]
    times = np.unique(np.concatenate([own["begin_ns"], own["end_ns"]])).astype(np.int64)
    steps = np.diff(times)
    start = min(offset_us.values())
    last = {sm: int(own["end_clock"][own["sm"] == sm].max()) - begin for sm, begin in first.items()}
    return Launch(
        tracks=by_sm(tracks),
        origin_us={sm: at - start for sm, at in offset_us.items()},
        sm_mhz=mhz,
        step_ns=int(np.gcd.reduce(steps)) if len(steps) else 0,
        span_us=max(offset_us[sm] - start + clocks / mhz for sm, clocks in last.items()),
        blocks=int(head["blocks"]),
        threads=int(head["threads"]),
        lost_warps=int(head["lost_warps"]),
    )


def _alignment(own: Array, first: Mapping[int, int]) -> tuple[float, dict[int, float]]:
    """Returns clocks per microsecond, and the time of each SM's first clock in globaltimer's microseconds.

    globaltimer advances in steps, so what it shows is up to a step early; the largest difference between it and the
    clock of an SM is therefore the closest to the true one.
    """
    base = int(own["begin_ns"].min())
    pairs = {}
    for sm, start in first.items():
        mine = own[own["sm"] == sm]
        clocks = np.concatenate([mine["begin_clock"], mine["end_clock"]]) - np.uint64(start)
        ns = np.concatenate([mine["begin_ns"], mine["end_ns"]]) - np.uint64(base)
        pairs[sm] = clocks.astype(np.float64), ns.astype(np.float64)
    spent_ns = sum(float(np.ptp(ns)) for _, ns in pairs.values())
    spent = sum(float(clocks[ns.argmax()] - clocks[ns.argmin()]) for clocks, ns in pairs.values())
    if spent_ns <= 0 or spent <= 0:
        raise WarplogError("the kernel ends within one step of globaltimer; capture a larger case")
    mhz = 1e3 * spent / spent_ns
    return mhz, {sm: float((ns / 1e3 - clocks / mhz).max()) for sm, (clocks, ns) in pairs.items()}


def _slots(own: Array) -> dict[tuple[int, int], int]:
    """Returns the slot of each (SM, block)."""
    blocks: dict[int, dict[int, tuple[int, int]]] = {}
    rows = zip(*(own[name].tolist() for name in ("sm", "block", "begin_clock", "end_clock")), strict=True)
    for sm, block, begin, end in rows:
        low, high = blocks.setdefault(sm, {}).get(block, (begin, end))
        blocks[sm][block] = min(low, begin), max(high, end)
    return {(sm, block): slot for sm, mine in blocks.items() for block, slot in slots(mine).items()}


def _track(row: np.void, first: int, place: Mapping[tuple[int, int], int], events: Array) -> Track:
    """Returns the track of a warp, with the upper words of the clocks restored."""
    sm, block, warp, written = (int(row[name]) for name in ("sm", "block", "warp", "events"))
    kept = events[:written]
    low = np.array([int(row["begin_clock"]) % _LOW, *kept["clock"].tolist()], np.int64)
    begin, end = int(row["begin_clock"]) - first, int(row["end_clock"]) - first
    steps = np.mod(np.diff(low), _LOW).cumsum() + begin
    regions = tuple(kept["region"].tolist())
    where = f"block {block}, warp {warp}"
    if len(steps) and int(steps[-1]) > end:
        raise WarplogError(f"{where}: the clocks of its {len(steps)} events are not in order")
    if any(region >= len(REGIONS) for region in regions):
        raise WarplogError(f"{where}: region {max(regions)} is unknown; REGIONS is not that of timeline.cuh")
    lost = written - len(kept)
    return Track(sm, block, warp, place[sm, block], begin, end, tuple(steps.tolist()), regions, lost)
