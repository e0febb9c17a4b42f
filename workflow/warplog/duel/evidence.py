"""From turns to a verdict: the ratio of a block, what a process says, the noise between processes, and when to stop.

A block is four turns, ABBA or BAAB, so that a steady drift of the clock or the temperature cancels; its unit is the
logarithm of the ratio of B's two times to A's. A process says the mean of its blocks. Its standard error is that of the
means of consecutive groups of blocks, which holds if neighbouring blocks are alike.

Processes differ in where arrays and code lie. Three of them estimate that poorly, so their variance is drawn towards
what the same code shows in such processes (`Prior`), which counts as four further ones would. Differences between
processes beyond chance, as kernels show that differ, raise it.

The ratio is judged after three processes, and again whenever their number has doubled, until the verdict is SAME, or
FASTER or SLOWER and a further process confirms it: alone it shows half of the gap or more. `judge_ratio` shares the
probability of a false alarm among these looks. The confirmation makes false alarms rare also for a kernel whose
processes differ more than was seen of any: three times as much, fewer than 1 in 200 (tests/unit/duel).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from warplog.analysis.verdicts import (
    AMBIGUOUS,
    BETWEEN_PROCESSES,
    FASTER,
    SAME,
    SLOWER,
    Noise,
    Verdict,
    judge_ratio,
)
from warplog.duel.timer import A, B, Turn
from warplog.records.requested.duel import Estimate, Regime, Window

Array = npt.NDArray[np.float64]
TURNS = 4  # of a block
LEAST_PROCESSES = 3
_PRIOR_FREEDOM = 4.0
_GROUPS = 16  # of consecutive blocks, for the standard error
_NORMAL_MAD = 1.4826  # standard deviations of normal values in their median absolute deviation
_OUTLIER = 5.0  # standard deviations
_SUSTAINED_LOOKS = 2
UNCONFIRMED = "unconfirmed"  # why a verdict is AMBIGUOUS: a further process shows another ratio
_DECIDED = FASTER, SLOWER
_CONFIRMING = 0.5  # of the logarithm of the ratio that it confirms
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Prior:
    """The standard deviation of the log ratio between processes of the same code: relative, and in microseconds."""

    relative: float
    us: float


REST = Prior(3e-4, 0.002)  # on an H100, up to 0.03 % in windows of a quarter of a second
APART = Prior(BETWEEN_PROCESSES, 0.05)  # each side in a process of its own, with arrays of its own
SUSTAINED = Prior(BETWEEN_PROCESSES, 0.0)


@dataclass(frozen=True)
class Block:
    """Both sides' mean times in microseconds, and SM clocks in MHz, in four turns; a clock is 0 if it is unknown."""

    a_us: float
    b_us: float
    a_mhz: float
    b_mhz: float


def orders(swapped: Sequence[bool]) -> list[int]:
    """Returns the sides of the turns of blocks, ABBA, or BAAB for those that are swapped."""
    return [side for swap in swapped for side in ((B, A, A, B) if swap else (A, B, B, A))]


def blocks_of(turns: Sequence[Turn]) -> list[Block]:
    """Returns the blocks of consecutive turns."""
    return [_block(turns[first : first + TURNS]) for first in range(0, len(turns), TURNS)]


def _block(turns: Sequence[Turn]) -> Block:
    values = []
    for side in (A, B):
        first, second = (turn for turn in turns if turn.side == side)
        clock = (first.sm_mhz + second.sm_mhz) / 2 if first.sm_mhz and second.sm_mhz else 0.0
        values.append(((first.us + second.us) / 2, clock))
    (a_us, a_mhz), (b_us, b_mhz) = values
    return Block(a_us, b_us, a_mhz, b_mhz)


def step_of(turns: Sequence[Turn]) -> float:
    """Returns the step of the clock of events, in microseconds: the smallest difference between two times; 0 for none.

    Smaller differences than those of the single-precision numbers in which events give times are none.
    """
    times = np.sort([turn.us for turn in turns])
    steps = np.diff(times)
    steps = steps[steps > max(_ROUNDING * float(times[-1]), _ROUNDING)]
    return float(steps.min(initial=math.inf)) if len(steps) else 0.0


def estimate(log_ratios: Sequence[float], step: float) -> Estimate:
    """Returns the mean of the log ratios of blocks, in which outliers count as much as the last value that is none.

    The median would be one of few values if a launch takes few steps of the clock.

    Args:
        log_ratios: of the blocks, in their order.
        step: of the clock, relative to a launch.
    """
    values: Array = np.asarray(log_ratios, dtype=np.float64)
    middle = float(np.median(values))
    reach = max(_OUTLIER * _NORMAL_MAD * float(np.median(np.abs(values - middle))), 2 * step)
    values = np.clip(values, middle - reach, middle + reach)
    groups = np.array([group.mean() for group in np.array_split(values, min(_GROUPS, len(values)))])
    error = float(groups.std(ddof=1)) / math.sqrt(len(groups)) if len(groups) > 1 else 0.0
    return Estimate(log_ratio=float(values.mean()), error=error)


def found_in(blocks: Sequence[Block], step_us: float) -> dict[str, Any]:
    """Returns the fields of `Window` that the blocks decide; cycles are None if half of the clocks are unknown."""
    a_us, b_us = (float(np.mean([getattr(block, name) for block in blocks])) for name in ("a_us", "b_us"))
    step = step_us / min(a_us, b_us)
    clocked = [block for block in blocks if block.a_mhz and block.b_mhz]
    known = 2 * len(clocked) > len(blocks)
    cycles = [math.log(block.b_us * block.b_mhz / (block.a_us * block.a_mhz)) for block in clocked]
    return {
        "blocks": len(blocks),
        "time": estimate([math.log(block.b_us / block.a_us) for block in blocks], step),
        "cycles": estimate(cycles, step) if known else None,
        "a_us": a_us,
        "b_us": b_us,
        "a_mhz": float(np.mean([block.a_mhz for block in clocked])) if known else None,
        "b_mhz": float(np.mean([block.b_mhz for block in clocked])) if known else None,
        "step_us": step_us,
    }


def judge(estimates: Sequence[Estimate], us: float, prior: Prior, margin: float, looks: int) -> Verdict:
    """Returns the verdict on B against A from what each process found.

    Args:
        estimates: one per process, two at least.
        us: A's time.
        prior: how processes of the same code differ.
        margin: the relative gap up to which two times are SAME.
        looks: how often the ratio may be judged.
    """
    count = len(estimates)
    logs = np.array([one.log_ratio for one in estimates])
    within = float(np.mean([one.error**2 for one in estimates]))
    expected = prior.relative**2 + (prior.us / us) ** 2 + within
    freedom = _PRIOR_FREEDOM + count - 1
    variance = (_PRIOR_FREEDOM * expected + (count - 1) * float(logs.var(ddof=1))) / freedom
    noise = Noise(math.sqrt(variance / count), freedom)
    return judge_ratio(us, math.exp(float(logs.mean())), noise, margin, looks)


@dataclass(frozen=True)
class Rule:
    """When to judge, and when to stop.

    Attributes:
        prior: how processes of the same code differ.
        margin: the relative gap up to which two times are SAME.
        looks: how often the ratio may be judged.
    """

    prior: Prior
    margin: float
    looks: int

    @property
    def sizes(self) -> list[int]:
        """The numbers of processes after which the ratio is judged."""
        return [LEAST_PROCESSES << look for look in range(self.looks)]

    def is_over(self, windows: Sequence[Window]) -> bool:
        """Returns whether the verdict on these processes is final."""
        count, last = len(windows), self.sizes[-1]
        if count in self.sizes:
            word = self._at_once(windows).word
            return word == SAME or (word == AMBIGUOUS and count == last)
        return self._confirms(windows) and (count > last or self.judge(windows).word in _DECIDED)

    def judge(self, windows: Sequence[Window]) -> Verdict:
        """Returns the verdict on the time of B against that of A, after as many processes as `is_over` asks for."""
        verdict = self._at_once(windows)
        if not self._confirms(windows):
            return verdict
        before = self._at_once(windows[:-1])
        own, others = windows[-1].time.log_ratio, math.log(before.ratio)
        if verdict.word == before.word and own / others >= _CONFIRMING:
            return verdict
        low, high = min(verdict.low, 1.0), max(verdict.high, 1.0)
        return replace(verdict, word=AMBIGUOUS, reason=UNCONFIRMED, low=low, high=high)

    def _confirms(self, windows: Sequence[Window]) -> bool:
        """Returns whether the last process is the one that confirms what those before have decided."""
        return len(windows) - 1 in self.sizes and self._at_once(windows[:-1]).word in _DECIDED

    def _at_once(self, windows: Sequence[Window]) -> Verdict:
        us = float(np.mean([window.a_us for window in windows]))
        return judge([window.time for window in windows], us, self.prior, self.margin, self.looks)


def rules(apart: bool, margin: float, looks: int) -> dict[Regime, Rule]:
    """Returns the rule of each regime, in the order in which they are measured."""
    return {
        "rest": Rule(APART if apart else REST, margin, looks),
        "sustained": Rule(SUSTAINED, margin, _SUSTAINED_LOOKS),
    }


def looks_within(seconds: float, window_s: float) -> int:
    """Returns how often the ratio may be judged if all windows together last for at most `seconds`; at least once."""
    return max(1, 1 + int(math.log2(max(seconds / (LEAST_PROCESSES * window_s), 1.0))))
