"""Is B faster than A? Judge the times of two measurements, each made in several processes, by fixed rules.

The number of a measurement is the median of its processes' medians. FASTER or SLOWER requires all of:

- a gap of at least `least` (0.5 %) that is also larger than the same code shows between processes with p = 0.002. The
  processes are the unit of this test: more samples of one process are no further evidence (see floors.py);
- a rank-sum test of all samples with p < 0.002 after Holm's correction for the number of comparisons;
- a confidence interval of the ratio, from the samples within the processes, that excludes 1;
- the same result in cycles if the SM clock was recorded.

SAME requires the whole interval within the gap. Everything else is AMBIGUOUS, with a reason. A sustained time is one
number per process: the gap decides alone, and nothing is confirmed in cycles, since the limited clock is part of the
result.

Sources: H. B. Mann and D. R. Whitney, Ann. Math. Statist. 18 (1947) 50; S. Holm, Scand. J. Statist. 6 (1979) 65;
B. Efron, Ann. Statist. 7 (1979) 1; N. Cliff, Psychol. Bull. 114 (1993) 494.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

ALPHA = 0.002
LEAST_EFFECT = 0.005
_CONFIDENCE = 0.99
_RESAMPLES, _SEED = 4000, 20240229
_MOST_EXACT = 50

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int_]


@dataclass(frozen=True)
class Samples:
    """Times of one case in one process in microseconds, and the SM clock of each in MHz if it was recorded."""

    times_us: tuple[float, ...]
    sm_mhz: tuple[float, ...] | None = None

    @cached_property
    def median_us(self) -> float:
        """The median time in microseconds."""
        return float(np.median(self.times_us))


Processes = Sequence[Samples]  # one measurement: the samples of each of its processes


@dataclass(frozen=True)
class Noise:
    """What the same code shows: standard deviation of the log ratio of two numbers, and its degrees of freedom."""

    deviation: float
    freedom: float = math.inf

    def gap(self, p: float = ALPHA) -> float:
        """Returns the relative gap that the same code exceeds with this two-sided probability."""
        from scipy.special import stdtrit  # scipy.stats has it too, but takes a second to import

        return math.expm1(min(float(stdtrit(self.freedom, 1 - p / 2)) * self.deviation, 10.0))

    def p(self, ratio: float) -> float:
        """Returns the two-sided probability that the same code shows this ratio or one further from 1."""
        from scipy.special import stdtr

        if self.deviation == 0:
            return float(ratio == 1)
        return float(2 * stdtr(self.freedom, -abs(math.log(ratio)) / self.deviation))


@dataclass(frozen=True)
class Contrast:
    """Comparison of B with A in one quantity.

    `ratio` is B's number over A's and (`low`, `high`) its 99 % bootstrap interval from the samples within the
    processes; `p` is the two-sided p-value of the rank-sum test of all samples, `effect` Cliff's delta:
    P(b > a) - P(b < a), from -1 to 1. Of one number per process there is no interval (low = ratio = high) and no test
    (`p` and `effect` are None).
    """

    ratio: float
    low: float
    high: float
    p: float | None
    effect: float | None


@dataclass(frozen=True)
class Verdict:
    """FASTER, SLOWER, SAME or AMBIGUOUS for B against A, and the numbers it is based on.

    `before_us` is A's number. `confirmed` is True if the verdict is FASTER or SLOWER in cycles too. `p` is that of the
    gap, with the processes as the unit; `p_samples` and `p_cycles` are those of the rank-sum tests, corrected for the
    number of comparisons; `least` is the smallest gap that counts.
    """

    word: str
    reason: str
    confirmed: bool
    before_us: float
    time: Contrast
    cycles: Contrast | None
    p: float
    p_samples: float | None
    p_cycles: float | None
    least: float


def judge(
    pairs: Sequence[tuple[Processes, Processes]], noises: Sequence[Noise], least: float = LEAST_EFFECT
) -> list[Verdict]:
    """Returns one verdict per pair (A, B); Holm's correction uses the number of pairs.

    `noises` is what the same code shows, per pair; a gap below `least` never counts. The result is deterministic: the
    bootstrap has a fixed seed.
    """
    both = [_contrasts(a, b) for a, b in pairs]
    times, cycles = [time for time, _ in both], [cycle for _, cycle in both]
    in_time = holm([t.p for t in times if t.p is not None])
    in_cycles = iter(holm([c.p for c in cycles if c is not None and c.p is not None]))
    verdicts = []
    for (a, b), time, cycle, p_time, noise in zip(pairs, times, cycles, in_time, noises, strict=True):
        p_cycles = next(in_cycles) if cycle is not None else None
        gap = max(least, noise.gap())
        first, second = (sum(len(one.times_us) for one in side) for side in (a, b))
        if 2 / math.comb(first + second, first) < ALPHA:
            word, reason = _decide(time, cycle, p_time, p_cycles, gap)
        else:
            word, reason = "AMBIGUOUS", f"{first} and {second} samples are too few for a verdict; take more"
        confirmed = word in ("FASTER", "SLOWER") and cycle is not None
        p = noise.p(time.ratio)
        verdicts.append(
            Verdict(word, reason, confirmed, _number(_times(a)), time, cycle, p, p_time, p_cycles, gap)
        )
    return verdicts


def judge_sustained(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]],
    noises: Sequence[Noise],
    least: float = LEAST_EFFECT,
) -> list[Verdict]:
    """Returns one verdict per pair (A, B) of sustained times, one number per process in microseconds."""
    verdicts = []
    for (a, b), noise in zip(pairs, noises, strict=True):
        before = float(np.median(a))
        ratio = float(np.median(b)) / before
        gap = max(least, noise.gap())
        direction = _direction(ratio, gap)
        word = {1: "SLOWER", 0: "SAME", -1: "FASTER"}[direction]
        reason = "not confirmed in cycles: the limited clock is part of the result" if direction else ""
        time = Contrast(ratio, ratio, ratio, None, None)
        verdicts.append(Verdict(word, reason, False, before, time, None, noise.p(ratio), None, None, gap))
    return verdicts


def _contrasts(a: Processes, b: Processes) -> tuple[Contrast, Contrast | None]:
    """Returns the contrasts of times and of cycles, if both sides have clocks."""
    cycles = contrast(_cycles(a), _cycles(b)) if _has_clocks((*a, *b)) else None
    return contrast(_times(a), _times(b)), cycles


def contrast(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]]) -> Contrast:
    """Compares B with A; both hold the positive numbers of each process, at least one."""
    first, second = ([np.asarray(one, dtype=np.float64) for one in side] for side in (a, b))
    low, high = _interval(first, second)
    p, effect = rank_sum(np.concatenate(first), np.concatenate(second))
    return Contrast(_number(second) / _number(first), low, high, p, effect)


def rank_sum(a: Array, b: Array) -> tuple[float, float]:
    """Returns the two-sided p-value of the Mann-Whitney test, and Cliff's delta of `b` against `a`.

    The p-value is exact, even with ties, up to 50 samples in total; above that it is the normal approximation.
    """
    _, places, ties = np.unique(np.concatenate([a, b]), return_inverse=True, return_counts=True)
    ranks = (ties.cumsum() - (ties - 1) / 2)[places]  # from 1; equal values have the mean of their ranks
    above = float(ranks[a.size :].sum()) - b.size * (b.size + 1) / 2
    effect = 2 * above / (a.size * b.size) - 1
    if a.size + b.size > _MOST_EXACT:
        return _approximate(above, ties, a.size, b.size), effect
    return _exact(np.rint(2 * ranks).astype(int), a.size), effect


def _approximate(above: float, ties: npt.NDArray[np.int_], first: int, second: int) -> float:
    """Returns the two-sided p-value of the normal approximation, with corrections for continuity and ties.

    `above` is how many pairs have a larger second value, where equal ones count half. scipy.stats.mannwhitneyu returns
    the same, but takes a second to import and ten times as long.
    """
    from scipy.special import ndtr

    count = first + second
    tied = float((ties**3 - ties).sum()) / (count * (count - 1))
    deviation = math.sqrt(first * second / 12 * (count + 1 - tied))
    if deviation == 0:
        return 1.0
    return min(1.0, float(2 * ndtr(-(abs(above - first * second / 2) - 0.5) / deviation)))


def _exact(ranks: npt.NDArray[np.int_], size: int) -> float:
    """Returns the exact two-sided p-value for the first `size` of the doubled ranks.

    It is the share of all choices of `size` ranks whose sum is at least as far from the mean as theirs.
    """
    ways = _ways(tuple(sorted(ranks.tolist())), size)
    mean = (ways.size - 1) * size / ranks.size
    far = np.abs(np.arange(ways.size) - mean) >= abs(float(ranks[:size].sum()) - mean) - 1e-9
    return float(ways[far].sum() / ways.sum())


@lru_cache(maxsize=16)
def _ways(ranks: tuple[int, ...], size: int) -> Array:
    """Returns for each sum how many choices of `size` ranks have it; without ties, these depend on the numbers only."""
    whole = sum(ranks)
    choices: Array = np.zeros((size + 1, whole + 1))
    choices[0, 0] = 1
    for rank in ranks:
        choices[1:, rank:] += choices[:-1, : whole + 1 - rank].copy()
    ways: Array = choices[size].copy()
    return ways


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns the p-values corrected by Holm's method, in the given order."""
    corrected, worst = [1.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        worst = max(worst, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = worst
    return corrected


def _number(processes: Sequence[Sequence[float]] | Sequence[Array]) -> float:
    """Returns the number of a measurement: the median of the medians of its processes."""
    return float(np.median([float(np.median(one)) for one in processes]))


def _interval(a: Sequence[Array], b: Sequence[Array]) -> tuple[float, float]:
    places = iter(_places(tuple(one.size for one in (*a, *b))))
    first, second = (
        _median_of([_resampled_medians(process, next(places)) for process in side]) for side in (a, b)
    )
    tail = 50 * (1 - _CONFIDENCE)
    low, high = np.percentile(second / first, (tail, 100 - tail))
    return float(low), float(high)


def _median_of(rows: Sequence[Array]) -> Array:
    """Returns the median of each column."""
    return rows[0] if len(rows) == 1 else np.median(rows, axis=0)


def _resampled_medians(values: Array, places: tuple[Places, Places]) -> Array:
    """Returns medians of bootstrap samples, whose two middle values have these places in the sorted values."""
    ordered: Array = np.sort(values)
    below, above = places
    return (ordered[below] + ordered[above]) / 2


@lru_cache(maxsize=4)
def _places(sizes: tuple[int, ...]) -> list[tuple[Places, Places]]:
    """Returns for processes of these sizes where the middle of each bootstrap sample lies in the sorted values.

    The cycles of a measurement have the sizes of its times, and thus the same places. No samples are drawn: the
    median's index is an order statistic of uniform numbers, which has a Beta distribution; for an even number of
    samples the next order statistic is drawn too.
    """
    random = np.random.default_rng(_SEED)
    found = []
    for n in sizes:
        middle = (n + 1) // 2
        lower = random.beta(middle, n + 1 - middle, _RESAMPLES)
        below = np.minimum((n * lower).astype(int), n - 1)
        above = below
        if n % 2 == 0:
            upper = 1 - (1 - lower) * random.random(_RESAMPLES) ** (1 / (n - middle))
            above = np.minimum((n * upper).astype(int), n - 1)
        found.append((below, above))
    return found


def _times(processes: Processes) -> list[tuple[float, ...]]:
    return [one.times_us for one in processes]


def _has_clocks(processes: Processes) -> bool:
    return all(one.sm_mhz is not None for one in processes)


def _cycles(processes: Processes) -> list[list[float]]:
    return [[t * mhz for t, mhz in zip(one.times_us, one.sm_mhz or (), strict=True)] for one in processes]


def _decide(
    time: Contrast, cycles: Contrast | None, p: float, p_cycles: float | None, least: float
) -> tuple[str, str]:
    found = _shown(time, p, least)
    if not found:
        return _unclaimed(time, p, least)
    word = "SLOWER" if found > 0 else "FASTER"
    if cycles is None or p_cycles is None:
        return word, "not confirmed in cycles: clock samples are missing"
    if _shown(cycles, p_cycles, least) != found:
        changes = f"time {percent(time.ratio)}, but cycles {percent(cycles.ratio)} (p = {p_cycles:.1g})"
        return "AMBIGUOUS", f"{changes}: not confirmed, the clock differed"
    return word, ""


def _shown(found: Contrast, p: float, least: float) -> int:
    """Returns 1 if B is clearly above A, -1 if it is clearly below, 0 if neither is shown."""
    if p >= ALPHA or found.low <= 1 <= found.high:
        return 0
    return _direction(found.ratio, least)


def _direction(ratio: float, least: float) -> int:
    """Returns 1 or -1 if the ratio is above or below 1 by at least the least gap, else 0."""
    if abs(math.log(ratio)) < math.log1p(least):
        return 0
    return 1 if ratio > 1 else -1


def _unclaimed(time: Contrast, p: float, least: float) -> tuple[str, str]:
    if max(abs(math.log(time.low)), abs(math.log(time.high))) <= math.log1p(least):
        return (
            "SAME",
            f"a difference, but less than the least gap of {100 * least:.2g} %" if p < ALPHA else "",
        )
    span = f"{percent(time.low)} to {percent(time.high)}"
    if p < ALPHA:
        return (
            "AMBIGUOUS",
            f"a difference, but {span} is not clearly above the least gap of {100 * least:.2g} %",
        )
    return "AMBIGUOUS", f"no difference shown, but {span} is too wide for SAME"


def percent(ratio: float) -> str:
    """Returns a ratio as a signed change: "+2.00 %" for 1.02."""
    return f"{100 * (ratio - 1):+.2f} %"
