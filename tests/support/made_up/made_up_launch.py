"""The buffer that marks would fill in a made-up kernel, whose waits and bubbles are known.

A block of the kernel has a producer (warp 0) and two consumers (warps 4 and 5). A stage of the ring is loaded in 800
clocks and multiplied in 1000; after the steps of a tile, a consumer stores for 3000 clocks.
"""

from itertools import pairwise

import numpy as np

from warplog.measure.stages.timeline import launch_record
from warplog.metrics.tracks import REGIONS
from warplog.parsers.timeline_buffer import EVENT, HEAD, WARP, Launch, read
from warplog.records.requested.timeline import Overhead, TimelineCase

MHZ, STEP_NS = 1750, 32
STAGES, STEPS, TILES = 4, 8, 3
LOADED, COMPUTED, STORED = 800, 1000, 3000
CONSUMERS = (4, 5)
SM_STARTS = {
    0: 2**32 - 5_000,
    7: 2**40 + 12_345,
}  # clock64 when the launch starts; the low word of SM 0 wraps


class Buffer:
    """What the warps of a launch write; `starts` has the clock of each SM when the launch starts."""

    def __init__(self, starts=None, most_warps=64, most_events=64):
        self.starts = starts or SM_STARTS
        self.head = np.zeros(1, HEAD)
        self.warps = np.zeros(most_warps, WARP)
        self.events = np.zeros((most_warps, most_events), EVENT)
        self.head["kernels"], self.head["blocks"], self.head["threads"] = 1, 2, 192

    def warp(self, index, sm, block, warp, begin, end, events):
        """Adds a warp that runs from clock `begin` to `end` after the launch starts, with events (clock, region)."""
        row, start = self.warps[index], self.starts[sm]
        for name, clock in (("begin", begin), ("end", end)):
            row[f"{name}_clock"] = start + clock
            row[f"{name}_ns"] = 10**15 + int(clock * 1e3 / MHZ) // STEP_NS * STEP_NS
        row["sm"], row["block"], row["warp"], row["events"] = sm, block, warp, len(events)
        for place, (clock, region) in enumerate(events[: self.events.shape[1]]):
            self.events[index, place] = ((start + clock) % 2**32, REGIONS.index(region))

    def parts(self):
        return {"head": self.head, "warps": self.warps, "events": self.events.reshape(-1)}

    def read(self) -> Launch:
        return read(self.head[0], self.warps, self.events.reshape(-1))


def pipelined(**changes) -> Buffer:
    """The made-up kernel: one block on each SM, the second one 600 clocks later."""
    made = Buffer(**changes)
    for block, sm in enumerate(made.starts):
        late, end = 600 * block, 0
        producer, consumer = _ring(100 + late)
        end = max(producer[-1][0], consumer[-1][0]) + STORED
        made.warp(8 * block, sm, block, 0, late, end, producer)
        for warp in CONSUMERS:
            made.warp(8 * block + warp, sm, block, warp, late, end, consumer)
    return made


def _ring(begin):
    """The events of the producer and of a consumer from clock `begin` on."""
    producer, consumer, freed = [], [], []
    loader = worker = begin
    for step in range(TILES * STEPS):
        free = freed[step - STAGES] if step >= STAGES else begin
        requested = max(loader, free)
        producer += [(loader, "wait"), (requested, "load")]
        loader = requested + 20
        computes = max(worker, requested + LOADED)
        consumer += [(worker, "wait"), (computes, "compute")]
        worker = computes + COMPUTED
        freed.append(worker)
        if step % STEPS == STEPS - 1:
            consumer.append((worker, "store"))
            worker += STORED
    return producer, consumer


def lookback() -> Buffer:
    """A scan: blocks of two warps follow each other in two slots of an SM; warp 0 waits for the tiles before."""
    made = Buffer({3: 1000})
    for block in range(12):
        begin = block // 2 * 5000 + block % 2 * 200
        first = [
            (begin + 50, "load"),
            (begin + 1500, "sync"),
            (begin + 1510, "lookback"),
            (begin + 3510, "store"),
        ]
        other = [(begin + 50, "load"), (begin + 1500, "sync"), (begin + 3510, "store")]
        for warp, events in enumerate((first, other)):
            made.warp(2 * block + warp, 3, block, warp, begin, begin + 4500, events)
    return made


def times(plain=100.0, marked=100.5, again=100.2):
    """The times of a captured case, each from one sample."""
    return Overhead(
        plain_us=plain,
        marked_us=marked,
        again_us=again,
        plain_samples_us=(plain,),
        marked_samples_us=(marked,),
        again_samples_us=(again,),
        overhead_pct=100 * (marked / ((plain + again) / 2) - 1),
        noise_pct=100 * abs(again / plain - 1),
    )


def case_of(buffer: Buffer, case: str):
    """The entry of a record for a case that was captured."""
    return TimelineCase(
        case=case,
        status="ok",
        reason="",
        seconds=1.5,
        max_error_over_tolerance=0.1,
        overhead=times(),
        launch=launch_record(buffer.read()),
    )


def gaps(clocks):
    """The differences between clocks that follow each other."""
    return [b - a for a, b in pairwise(clocks)]
