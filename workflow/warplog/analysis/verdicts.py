"""Is B faster than A? The one rule by which pages, figures, claims, comparisons and histories decide it.

A time is the median of several processes, each a fresh start of the same program. The same code gives other medians
in another run: by the spread between processes, and by what all processes of a run share. The *floor* of a pair is the
gap that the same code exceeds with p = 0.002, given both.

- FASTER or SLOWER: the gap is larger than the floor.
- SAME: the 95 % interval of the ratio lies within a declared margin.
- AMBIGUOUS: neither; the interval of the floor contains 1 and states what is not excluded.

The processes of some kernels form two groups, depending on where memory lies. The median then tells little, and a gap
counts only if it is larger than the range of those processes, too.

A verdict depends on nothing but its two sides: swapping them swaps FASTER and SLOWER and inverts the ratio, and other
pairs change nothing. Source: B. L. Welch, Biometrika 34 (1947) 28 (Student's t with unequal variances).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from warplog.core.columns import Row, number

FASTER, SLOWER, SAME, AMBIGUOUS = WORDS = ("FASTER", "SLOWER", "SAME", "AMBIGUOUS")
ALPHA = 0.002
MARGIN = 0.02
WIDE, TWO_GROUPS = "wide", "two_groups"  # why a verdict is AMBIGUOUS
_OUTSIDE = 0.05  # probability of a ratio outside of the interval


@dataclass(frozen=True)
class Noise:
    """How far from a number the same code lies in another run.

    `deviation` is the standard deviation of the number's logarithm, with `freedom` degrees of freedom; `groups` the
    range of the logarithms of its processes if these form two groups, else 0.
    """

    deviation: float
    freedom: float = math.inf
    groups: float = 0.0

    def half(self, p: float = ALPHA) -> float:
        """Returns the deviation that the same code exceeds with this two-sided probability."""
        from scipy.special import stdtrit  # scipy.stats has it too, but takes a second to import

        return max(float(stdtrit(self.freedom, 1 - p / 2)) * self.deviation, self.groups)

    def gap(self, p: float = ALPHA) -> float:
        """Returns the relative gap that the same code exceeds with this two-sided probability."""
        return math.expm1(min(self.half(p), 10.0))

    def p(self, ratio: float) -> float:
        """Returns the two-sided probability that the same code shows this ratio or one further from 1."""
        from scipy.special import stdtr

        if self.deviation == 0:
            return float(ratio == 1)
        return float(2 * stdtr(self.freedom, -abs(math.log(ratio)) / self.deviation))


EXACT = Noise(0.0)
DRIFT, BETWEEN_PROCESSES = (
    0.003,
    0.003,
)  # between runs of the same code, and what is assumed between its processes
ASSUMED = Noise(math.hypot(DRIFT, BETWEEN_PROCESSES))  # of a time of one process without a floor


@dataclass(frozen=True)
class Timed:
    """A measured time in microseconds, and its noise."""

    us: float
    noise: Noise


@dataclass(frozen=True)
class Verdict:
    """B against A.

    Attributes:
        word: one of WORDS.
        reason: why it is AMBIGUOUS: WIDE, the interval exceeds the margin, or TWO_GROUPS of processes; else "".
        before_us, ratio: A's time, and B's over A's.
        low, high: the interval of the ratio; it contains 1 unless the word is FASTER or SLOWER.
        floor: the smallest relative gap that counts.
        p: the two-sided probability that the same code shows such a gap.
    """

    word: str
    reason: str
    before_us: float
    ratio: float
    low: float
    high: float
    floor: float
    p: float


def between(a: Noise, b: Noise) -> Noise:
    """Returns the noise of the ratio of two numbers."""
    first, second = a.deviation**2, b.deviation**2
    uncertainty = first**2 / a.freedom + second**2 / b.freedom
    freedom = (first + second) ** 2 / uncertainty if uncertainty else math.inf
    return Noise(math.sqrt(first + second), freedom, max(a.groups, b.groups))


def judge(a: Timed, b: Timed, margin: float = MARGIN) -> Verdict:
    """Returns the verdict on B against A; `margin` is the relative gap up to which two times are SAME."""
    return judge_ratio(a.us, b.us / a.us, between(a.noise, b.noise), margin)


def judge_ratio(
    before_us: float, ratio: float, noise: Noise, margin: float = MARGIN, looks: int = 1
) -> Verdict:
    """Returns the verdict on B against A from the ratio of B's time to A's, and the noise of that ratio.

    `looks` is how often it may be judged while data are collected, until a word is final: each look gets an equal share
    of the probability of being wrong (Bonferroni), which then holds for all of them together.
    """
    floor, likely = noise.gap(ALPHA / looks), noise.gap(_OUTSIDE / looks)
    word, reason = AMBIGUOUS, TWO_GROUPS if 0 < floor <= math.expm1(noise.groups) else WIDE
    if abs(math.log(ratio)) > math.log1p(floor):
        word, reason = SLOWER if ratio > 1 else FASTER, ""
    elif max(ratio, 1 / ratio) * (1 + likely) <= 1 + margin:
        word, reason = SAME, ""
    return Verdict(
        word, reason, before_us, ratio, ratio / (1 + floor), ratio * (1 + floor), floor, noise.p(ratio)
    )


def timed(row: Row) -> Timed | None:
    """Returns the time at rest in a row of `measurements` with the columns of its floor; None without a time."""
    us = number(row, "median_us")
    return Timed(us, noise_of(row)) if us > 0 else None


def noise_of(row: Row) -> Noise:
    """Returns the noise in a row with the columns of the table `floors`; ASSUMED if they are empty or missing."""
    deviation, freedom, groups = (number(row, name) for name in ("deviation", "freedom", "groups"))
    if math.isnan(deviation):
        return ASSUMED
    return Noise(deviation, math.inf if math.isnan(freedom) else freedom, groups)


def tied(a: Row, b: Row) -> bool:
    """Returns whether neither of two rows of `measurements` is faster than the other; False without times."""
    first, second = timed(a), timed(b)
    return first is not None and second is not None and judge(first, second).word in (SAME, AMBIGUOUS)


def leading(rows: Sequence[Row]) -> list[bool]:
    """Returns of each row of `measurements` at one case whether it is the fastest, or tied with it."""
    times = [number(row, "median_us") for row in rows]
    timed = [us for us in times if us > 0]
    best = rows[times.index(min(timed))] if timed else {}
    return [row is best or tied(row, best) for row in rows]
