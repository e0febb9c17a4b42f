"""The two regimes of a measurement: rest, where no limit holds the clock down, and sustained, back to back.

At the power limit, the time of a kernel depends on what ran before: the same machine code was measured at 174 and at
207 us. Each regime has one answer:

rest: launches are so far apart that the SM clock stays at its maximum. The clock that is set is read before each
launch; a launch before or after which it is below 99 % of the maximum is discarded. Cold samples and short batches
(hot) are taken at rest.
sustained: launches follow each other. The controller of the power limit lets power swing around the limit with a period
of about a second, and the time per launch swings with it. Therefore both are noted in steps of 0.1 s, from which
measure.power_limit derives the time at the limit.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from warplog.core.statistics import MEDIAN_EFFICIENCY, summarise
from warplog.machine.clocks import Sampler
from warplog.measure.worker.backend import Launcher
from warplog.measure.worker.timer import ColdSample, Timer

LEAST_SAMPLES = 3  # taken even if the kernel is so slow that they exceed the time limit
_LONG_US, _VERY_LONG_US = 8e3, 1e5  # a launch that takes longer is sampled twice, or once
# Busy for a third of the time: a board that can draw twice its limit stays below it.
_PAUSE_OF_LAUNCH = 2
_PAUSE_LEAST_US, _PAUSE_MOST_US = 1_000.0, 50_000.0
_LIMITED_US = 500.0  # shorter launches are so far apart because of the flushes that they rarely need pauses
_PATIENCE_S = 1.0  # for launches that are all discarded
_BATCH_SECONDS, _BATCH_MOST = 0.03, 20
_GRAPH_SECONDS, _GRAPH_MOST_LAUNCHES = 0.02, 500
_BURST_US, _BURSTS, _BURSTS_MOST_US = 2_000.0, 5, 50_000.0
_CHUNK_SECONDS = 0.1  # between two looks at the power
# From rest, settling takes longer: a board may exceed its limit for half a second, and pays it back in the next one.
SETTLE_FROM_REST_S, SETTLE_S = 0.4, 0.15
SUSTAINED_LEAST_S, SUSTAINED_MOST_S = 0.25, 1.2
ENOUGH_STEPS = 4  # of the energy counter, if a limit acts
_COUNTER_LAG_S = (
    0.02  # an update of the energy counter is that late on an H200 (least residual of times over power)
)


@dataclass(frozen=True)
class StopRule:
    """When to stop sampling in one process; the fields are settings of the section `time`, see config/README.md."""

    min_samples: int
    max_samples: int
    max_seconds: float
    rel_error: float


@dataclass
class ColdRun:
    """Cold samples at rest.

    Attributes:
        kept: the samples; the clock was at its maximum in all of them unless `held` is True.
        discarded: the number of launches that were discarded since a limit held the clock down.
        pause_us: the last pause between launches.
        held: whether the clock stays low even if the GPU idles, so that nothing was discarded.
    """

    kept: list[ColdSample] = field(default_factory=list)
    discarded: int = 0
    pause_us: float = 0.0
    held: bool = False


def pause_after(launch_us: float) -> float:
    """Returns the pause between launches, in microseconds, that keeps the mean power far below any limit."""
    return min(max(_PAUSE_OF_LAUNCH * launch_us, _PAUSE_LEAST_US), _PAUSE_MOST_US)


def sample_at_rest(
    timer: Timer, launcher: Launcher, arguments: Any, rule: StopRule, estimate_us: float
) -> ColdRun:
    """Takes cold samples until their median is precise enough, or a limit of the rule is reached.

    Launches pause once a limit has lowered the clock; long ones also if that happened to an earlier case of the
    process. A launch before or after which the clock is low is discarded. If the clock does not recover while the GPU
    idles, or too few launches are at rest in spite of pauses, a limit acts even at rest: then all are kept, and the run
    says so.
    """
    run = ColdRun(held=not timer.recover())
    if timer.was_limited and estimate_us > _LIMITED_US:
        run.pause_us = pause_after(estimate_us)
    low: list[ColdSample] = []

    def collect(count: int) -> list[ColdSample]:
        taken = timer.cold(launcher, arguments, count, run.pause_us)
        if run.held:
            return taken
        full = [timer.is_full(mhz) for mhz in (*(s.set_mhz for s in taken), timer.probe())]
        at_rest = [before and after for before, after in pairwise(full)]
        if not all(at_rest):
            timer.was_limited = True
            low.extend(s for s, good in zip(taken, at_rest, strict=True) if not good)
            run.pause_us = min(max(2 * run.pause_us, pause_after(estimate_us)), _PAUSE_MOST_US)
            run.held = not timer.recover()
        return [s for s, good in zip(taken, at_rest, strict=True) if good]

    least = least_samples(estimate_us)
    run.kept = sample_until(collect, rule, lambda: cold_batch(estimate_us + run.pause_us), least)
    run.discarded = len(low)
    if run.held or len(run.kept) < least:
        run.kept, run.discarded, run.held = run.kept + low, 0, True
    return run


def least_samples(estimate_us: float) -> int:
    """Returns how many samples are taken in any case."""
    if estimate_us > _VERY_LONG_US:
        return 1
    return 2 if estimate_us > _LONG_US else LEAST_SAMPLES


def sample_until(
    collect: Callable[[int], Sequence[ColdSample]],
    rule: StopRule,
    batch: Callable[[], int],
    least: int = LEAST_SAMPLES,
) -> list[ColdSample]:
    """Collects samples, `batch()` at a time, until the standard error of their median is small or a limit is reached.

    At least `least` are taken, however long they last, unless `collect` discards them for another second.
    """
    samples: list[ColdSample] = []
    tried, begin = 0, time.monotonic()
    while len(samples) < rule.max_samples and tried < 2 * rule.max_samples:
        late_s = time.monotonic() - begin - rule.max_seconds
        if late_s >= 0 and (len(samples) >= least or (tried >= least and late_s >= _PATIENCE_S)):
            break
        count = min(batch(), rule.max_samples - len(samples))
        samples += collect(count)
        tried += count
        if len(samples) >= rule.min_samples and median_error(samples) < rule.rel_error:
            break
    return samples


def median_error(samples: Sequence[ColdSample]) -> float:
    """Returns the relative standard error of the median: 1.25 s / sqrt(n) for n normal samples.

    The relative standard deviation s is estimated robustly, see Summary.rel_spread.
    """
    spread = summarise([s.event_us for s in samples]).rel_spread
    return MEDIAN_EFFICIENCY * spread / math.sqrt(len(samples))


def cold_batch(estimate_us: float) -> int:
    """Returns the number of samples per batch, so that a batch lasts at most about 30 ms."""
    return max(1, min(_BATCH_MOST, int(_BATCH_SECONDS * 1e6 / max(estimate_us, 1.0))))


@dataclass(frozen=True)
class HotRun:
    """Back-to-back launches at rest: microseconds per launch of each batch, and the launches of all batches.

    `limited` is True if a longer run lowered the clock, so that the kernel has another time when sustained.
    `uncaptured` says why the batches are no CUDA graphs, see timer.Batch.
    """

    samples_us: list[float]
    launches: int
    limited: bool
    uncaptured: str = ""


def batch_plan(estimate_us: float, seconds: float) -> tuple[int, int]:
    """Returns launches per batch (about 20 ms) and batches (`seconds` in total; 1 if one launch lasts longer)."""
    launches = max(1, min(_GRAPH_MOST_LAUNCHES, int(_GRAPH_SECONDS * 1e6 / max(estimate_us, 0.5))))
    batches = int(seconds * 1e6 / max(launches * estimate_us, 1.0)) + 1
    return launches, 1 if estimate_us >= seconds * 1e6 else max(5, min(batches, 2000))


def run_hot(timer: Timer, launcher: Launcher, arguments: Any, estimate_us: float, seconds: float) -> HotRun:
    """Runs batches for `seconds` (0: five bursts of 2 ms); if that lowers the clock, bursts with pauses instead.

    There are fewer bursts, but at least one, if five launches take longer than 50 ms.
    """
    burst = max(1, min(_GRAPH_MOST_LAUNCHES, int(_BURST_US / estimate_us)))
    bursts = max(1, min(_BURSTS, int(_BURSTS_MOST_US / (burst * estimate_us))))
    launches, batches = batch_plan(estimate_us, seconds) if seconds else (burst, bursts)
    with timer.batch(launcher, arguments, launches) as batch:
        samples, mhz = batch.run(batches)
    if timer.is_full(mhz):
        return HotRun(samples, launches * batches, False, batch.uncaptured)
    timer.was_limited = True
    timer.recover()
    with timer.batch(launcher, arguments, burst) as batch:
        samples, _ = batch.run(bursts, pause_after(burst * estimate_us))
    return HotRun(samples, burst * bursts, True, batch.uncaptured)


@dataclass(frozen=True)
class SustainedRun:
    """Back-to-back launches after settling.

    Attributes:
        samples_us: microseconds per launch of each batch of `launches` launches.
        steps: mean power (W) and mean time per launch (microseconds) between updates of the board's energy counter.
        begin_s, end_s: the measurement, by the monotonic clock.
    """

    samples_us: list[float]
    launches: int
    steps: list[tuple[float, float]]
    begin_s: float
    end_s: float


def run_sustained(
    timer: Timer,
    launcher: Launcher,
    arguments: Any,
    sampler: Sampler,
    *,
    estimate_us: float,
    settle_s: float,
    least_s: float,
) -> SustainedRun:
    """Runs batches for `settle_s`, then for at least `least_s`, and if a limit acts until there are ENOUGH_STEPS.

    A board that does not report its energy is measured for SUSTAINED_MOST_S if a limit acts.
    """
    launches, batches = batch_plan(estimate_us, _CHUNK_SECONDS)
    most_s = max(least_s, SUSTAINED_MOST_S)
    samples: list[float] = []
    middles_s: list[float] = []
    limited = False
    with timer.batch(launcher, arguments, launches) as batch:
        started = time.monotonic()
        while time.monotonic() - started < settle_s:
            batch.run(batches)
        begin = end = time.monotonic()
        done = False
        while not done:
            taken, mhz = batch.run(batches)
            end = time.monotonic()
            samples += taken
            middles_s += _middles([launches * us * 1e-6 for us in taken], end)
            limited = limited or not timer.is_full(mhz)
            enough = not limited or len(sampler.energy_steps(begin, end)) >= ENOUGH_STEPS
            done = end - begin >= (least_s if enough else most_s)
    return SustainedRun(samples, launches, steps_of(sampler, begin, end, samples, middles_s), begin, end)


def _middles(durations_s: Sequence[float], end_s: float) -> list[float]:
    """Returns the middle of each of consecutive batches, the last of which has ended at `end_s`."""
    after_s = [sum(durations_s[i + 1 :]) for i in range(len(durations_s))]
    return [end_s - later - own / 2 for own, later in zip(durations_s, after_s, strict=True)]


def steps_of(
    sampler: Sampler, begin_s: float, end_s: float, samples_us: Sequence[float], middles_s: Sequence[float]
) -> list[tuple[float, float]]:
    """Returns power (W) and mean time per launch (microseconds) between updates of the energy counter.

    Args:
        sampler: has read the counter.
        begin_s, end_s: the interval, by the monotonic clock.
        samples_us: the times of the batches.
        middles_s: when each batch was half done.
    """
    steps = []
    for begin, end, power_w in sampler.energy_steps(begin_s, end_s):
        inside = [
            us
            for us, middle in zip(samples_us, middles_s, strict=True)
            if begin <= middle + _COUNTER_LAG_S <= end
        ]
        if inside:
            steps.append((power_w, sum(inside) / len(inside)))
    return steps
