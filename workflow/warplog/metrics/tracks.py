"""What the warps of a kernel do over time, from the marks inside it: regions, roles, and numbers derived from them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

# In the order of timeline::Region in kernels/include/timeline.cuh.
REGIONS = ("none", "load", "wait", "compute", "store", "handover", "lookback", "sync")
_TILE_ENDS = ("store", "handover")
WORKING = ("consumer", "worker")  # the roles of warps that compute or store


class Span(NamedTuple):
    """A region of a warp, from clock `begin` to clock `end`."""

    region: str
    begin: int
    end: int

    @property
    def clocks(self) -> int:
        """The length in clocks of the SM."""
        return self.end - self.begin


@dataclass(frozen=True)
class Track:
    """One warp of one block; its regions follow each other, so they do not overlap.

    Times are clocks of the SM since the first warp of the launch started on it.

    Attributes:
        slot: number of the place on the SM that the block took, from 0; blocks in one slot follow each other.
        begin, end: when the marked part of the warp begins and ends.
        starts: when each region begins; it ends where the next one begins.
        regions: index in REGIONS of each region.
        lost: events that the buffer could not hold; the last region then ends at an unknown time and is left out.
    """

    sm: int
    block: int
    warp: int
    slot: int
    begin: int
    end: int
    starts: tuple[int, ...]
    regions: tuple[int, ...]
    lost: int = 0

    @cached_property
    def spans(self) -> list[Span]:
        """The regions in their order, without `none`."""
        ends = self.starts[1:] if self.lost else (*self.starts[1:], self.end)
        regions = zip(self.regions, self.starts, ends, strict=False)
        return [Span(REGIONS[region], begin, end) for region, begin, end in regions if region]

    def names(self) -> frozenset[str]:
        """Returns the names of the regions that occur, without `none`."""
        return frozenset(REGIONS[region] for region in set(self.regions) if region)


@dataclass(frozen=True)
class Numbers:
    """What a timeline shows, as numbers; None where the kernel has no such regions.

    The consumers are the warps that compute or store; if no warp only loads, all warps count as consumers.

    Attributes:
        region_us: mean length of a region.
        lead_steps: median over the steps of a consumer of the number of further steps whose loads the producer of the
            block has requested when the consumer begins to compute.
        lead_pct: share of the steps with at least one further step requested.
        producer_wait_pct: share of the producers' time in which they wait for a free stage.
        consumer_pct: share of the consumers' time by region.
        lookback_us: median length of a wait for the sums of the tiles before.
        bubbles: number of bubbles: at each tile end, where warps store or hand over, the longest time between two
            computations in which no warp of the SM computes.
        bubble_us: their median length; bubble_pct: their share of the time from the first to the last computation.
        starved_pct: share of that time in which no warp computes, stores or hands over.
    """

    region_us: float | None
    lead_steps: float | None
    lead_pct: float | None
    producer_wait_pct: float | None
    consumer_pct: Mapping[str, float]
    lookback_us: float | None
    bubbles: int | None
    bubble_us: float | None
    bubble_pct: float | None
    starved_pct: float | None


def roles(tracks: Iterable[Track]) -> Callable[[Track], str]:
    """Returns a function that names the role of a warp: producer, consumer, look-back or worker.

    A producer loads but neither computes nor stores. Where there is one, warps that compute or store are consumers.
    """
    specialised = any(_produces(track.names()) for track in tracks)

    def role(track: Track) -> str:
        names = track.names()
        if _produces(names):
            return "producer"
        if "lookback" in names and not names & {"load", "compute", "store"}:
            return "look-back"
        return "consumer" if specialised and names & {"compute", "store"} else "worker"

    return role


def _produces(names: frozenset[str]) -> bool:
    return "load" in names and not names & {"compute", "store"}


def numbers(tracks: Sequence[Track], sm_mhz: float) -> Numbers:
    """Returns the numbers of the warps of an SM; `sm_mhz` converts clocks to microseconds."""
    role = roles(tracks)
    consumers = [track for track in tracks if role(track) in WORKING]
    producers = [track for track in tracks if role(track) == "producer"]
    leads = _leads(producers, consumers)
    ends, starved, busy = _gaps(span for track in consumers for span in track.spans)
    bubbles_us = [(end - begin) / sm_mhz for begin, end in ends]
    spans = [span for track in tracks for span in track.spans]
    lookbacks = [span.clocks / sm_mhz for span in spans if span.region == "lookback"]
    return Numbers(
        region_us=sum(span.clocks for span in spans) / len(spans) / sm_mhz if spans else None,
        lead_steps=float(median(leads)) if leads else None,
        lead_pct=100 * sum(lead > 0 for lead in leads) / len(leads) if leads else None,
        producer_wait_pct=shares(producers).get("wait"),
        consumer_pct=shares(consumers),
        lookback_us=median(lookbacks) if lookbacks else None,
        bubbles=len(ends) if busy else None,
        bubble_us=median(bubbles_us) if bubbles_us else None,
        bubble_pct=100 * sum(end - begin for begin, end in ends) / busy if busy else None,
        starved_pct=100 * starved / busy if busy else None,
    )


def shares(tracks: Iterable[Track]) -> dict[str, float]:
    """Returns the percentage of each region in the warps' time, from their first region to the end of the last."""
    clocks, total = np.zeros(len(REGIONS)), 0
    for track in tracks:
        ends = track.starts[1:] if track.lost else (*track.starts[1:], track.end)
        regions = np.array(track.regions[: len(ends)], np.int64)
        lengths = np.array(ends, np.int64) - np.array(track.starts[: len(ends)], np.int64)
        used = np.flatnonzero(regions)
        if used.size:
            total += int(lengths[used[0] : used[-1] + 1].sum())
            clocks += np.bincount(regions, lengths, len(REGIONS))
    return {REGIONS[i]: float(100 * clocks[i] / total) for i in range(1, len(REGIONS)) if clocks[i] > 0}


def _leads(producers: Iterable[Track], consumers: Iterable[Track]) -> list[int]:
    """Returns, for each step of each consumer, how many further steps were requested when it began to compute."""
    loads = {track.block: [s.begin for s in track.spans if s.region == "load"] for track in producers}
    leads = []
    for track in consumers:
        requested = loads.get(track.block, [])
        steps = [span.begin for span in track.spans if span.region == "compute"]
        done = 0
        for step, begin in enumerate(steps, 1):
            while done < len(requested) and requested[done] <= begin:
                done += 1
            if requested:
                leads.append(done - min(step, len(requested)))
    return leads


def _gaps(spans: Iterable[Span]) -> tuple[list[tuple[int, int]], int, int]:
    """Returns the bubbles at tile ends, the clocks of gaps elsewhere, and those from the first to the last computation.

    A gap is a time between two computations in which nothing computes. The longest one at a tile end is its bubble:
    while some warps store, others that compute may wait for data, which are gaps as well, but short ones.
    """
    listed = list(spans)
    ends = _union(span for span in listed if span.region in _TILE_ENDS)
    busy = _union(span for span in listed if span.region == "compute")
    gaps = [(begin, end) for (_, begin), (end, _) in pairwise(busy)]
    at_ends = [[gap for gap in gaps if gap[0] < last and gap[1] > first] for first, last in ends]
    starved = set(gaps).difference(*at_ends)
    longest = {max(at_end, key=lambda gap: gap[1] - gap[0]) for at_end in at_ends if at_end}
    clocks = sum(end - begin for begin, end in starved)
    return sorted(longest), clocks, busy[-1][1] - busy[0][0] if busy else 0


def bubbles(spans: Iterable[Span]) -> list[tuple[int, int]]:
    """Returns begin and end of each bubble at a tile end, in clocks; `spans` are those of all consumers of an SM."""
    return _gaps(spans)[0]


def _union(spans: Iterable[Span]) -> list[tuple[int, int]]:
    """Returns the times covered by any of the spans, as disjoint intervals in order."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted((span.begin, span.end) for span in spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        elif end > begin:
            merged.append((begin, end))
    return merged


def slots(blocks: Mapping[int, tuple[int, int]]) -> dict[int, int]:
    """Returns the slot of each block of an SM, given its begin and end: the first one that is free when it begins."""
    free: list[int] = []
    slot_of = {}
    for block, (begin, end) in sorted(blocks.items(), key=lambda item: (item[1][0], item[0])):
        slot = next((i for i, until in enumerate(free) if until <= begin), len(free))
        free[slot : slot + 1] = [end]
        slot_of[block] = slot
    return slot_of


def by_sm(tracks: Iterable[Track]) -> dict[int, list[Track]]:
    """Returns the warps of each SM, in the order of slot, begin of the block and warp."""
    ordered = sorted(tracks, key=lambda t: (t.sm, t.slot, t.begin, t.block, t.warp))
    return {sm: list(group) for sm, group in groupby(ordered, key=lambda t: t.sm)}
