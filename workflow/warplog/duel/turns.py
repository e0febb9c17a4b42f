"""The turns that a process takes: at rest in blocks for a while, or for seconds back to back at the power limit."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import fmean
from typing import Any

from warplog.duel.evidence import TURNS
from warplog.duel.timer import Pair, SideFailed, Turn
from warplog.measure.results import LaunchFailed
from warplog.measure.worker import sampling
from warplog.measure.worker.backend import Launcher

LEAST_BLOCKS = 4
_LEAST_TURNS = LEAST_BLOCKS * TURNS
_BATCH_S = 0.03  # between two looks at the clock
_OVERHEAD_US = 200.0  # of a turn: the flush of L2, the stamps
_LONGEST_DELAY = 2000  # cycles, about 1 us: many steps of the clock of events
_PATIENCE = 3  # times the length of a window, for turns that are all discarded
TURN_S, _SETTLE_S = (
    3.0,
    0.5,
)  # at the power limit, whose controller lets the power swing with a period of a second

Order = Callable[[int], Sequence[int]]  # returns the places, in a pair, of the turns of so many blocks


@dataclass
class Taken:
    """Turns at rest.

    Attributes:
        kept: whole blocks; the clock was at its maximum in all of them unless `held`.
        discarded: blocks that were discarded since a limit held the clock down.
        pause_us: the last pause between launches.
        held: whether the clock stayed low in spite of pauses, so that nothing was discarded.
        seconds: wall time.
    """

    kept: list[Turn] = field(default_factory=list)
    discarded: int = 0
    pause_us: float = 0.0
    held: bool = False
    seconds: float = 0.0

    @property
    def launch_us(self) -> float:
        """The mean time of a launch."""
        return fmean(turn.us for turn in self.kept)


def take(pair: Pair, order: Order, seconds: float, random: Random) -> Taken:
    """Takes whole blocks of turns for `seconds`, at least LEAST_BLOCKS.

    As when one kernel is timed at rest, launches pause once a limit has lowered the SM clock, and what ran with a lower
    clock is discarded, unless the clock stays low in spite of pauses.

    Raises:
        LaunchFailed: A launcher or the device reports an error, or a launch is too short to time.
    """
    timer = pair.timer
    taken, low = Taken(held=not timer.recover()), list[Turn]()
    launch_us = fmean(max(turn.us, 0.0) for turn in pair.turns(order(1), [0] * TURNS, 0.0))
    begin = time.monotonic()
    while not _is_over(time.monotonic() - begin, seconds, len(taken.kept), len(low)):
        sides = order(_blocks_per_batch(launch_us + taken.pause_us))
        delays = [random.randrange(_LONGEST_DELAY) for _ in sides]
        turns = pair.turns(sides, delays, taken.pause_us)
        if taken.held or timer.is_full(timer.probe()):
            taken.kept += turns
            continue
        timer.was_limited = True
        low += turns
        longest = sampling.pause_after(math.inf)
        taken.pause_us = min(max(2 * taken.pause_us, sampling.pause_after(launch_us)), longest)
        taken.held = not timer.recover()
    if taken.held or len(taken.kept) < _LEAST_TURNS:
        taken.kept, low, taken.held = low + taken.kept, [], True
    taken.discarded, taken.seconds = len(low) // TURNS, time.monotonic() - begin
    if short := [turn for turn in taken.kept if turn.us <= 0]:
        why = "too short to time: an interval with a launch is no longer than the empty one"
        raise SideFailed(short[0].side, LaunchFailed("unsupported", why))
    return taken


def _is_over(spent_s: float, seconds: float, kept: int, low: int) -> bool:
    patient_s = seconds if kept >= _LEAST_TURNS else _PATIENCE * seconds
    return spent_s >= patient_s and kept + low >= _LEAST_TURNS


def _blocks_per_batch(launch_us: float) -> int:
    return max(1, int(_BATCH_S * 1e6 / (TURNS * (launch_us + _OVERHEAD_US))))


def lowers_the_clock(pair: Pair, which: int, arguments: Any, seconds: float) -> bool:
    """Returns whether a power or thermal limit lowers the SM clock when a launcher runs back to back for `seconds`."""
    with pair.alone(which) as launcher:
        launch_us = _hot_us(pair, launcher, arguments)
        return sampling.run_hot(pair.timer, launcher, arguments, launch_us, seconds).limited


def back_to_back(pair: Pair, which: int, arguments: Any) -> float:
    """Returns the mean time per launch, in microseconds, in a turn of TURN_S after the power has settled."""
    samples: list[float] = []
    with pair.alone(which) as launcher:
        launches, batches = sampling.batch_plan(_hot_us(pair, launcher, arguments), _SETTLE_S / 5)
        with pair.timer.batch(launcher, arguments, launches) as batch:
            begin = time.monotonic()
            while time.monotonic() - begin < _SETTLE_S:
                batch.run(batches)
            begin = time.monotonic()
            while time.monotonic() - begin < TURN_S:
                samples += batch.run(batches)[0]
    return fmean(samples)


def _hot_us(pair: Pair, launcher: Launcher, arguments: Any) -> float:
    with pair.timer.batch(launcher, arguments, 1) as single:
        return min(single.run(3)[0])
