"""Is B faster than A? Judge the samples of two measurements by fixed rules.

FASTER or SLOWER requires all of: a rank-sum test with p < 0.002 after Holm's correction for the number of
comparisons; a confidence interval of the ratio of the medians that excludes 1; a gap of at least `least` (0.5 %, or the
gap that the same code shows against itself); and the same result in cycles if the SM clock was recorded. SAME requires
the whole interval within that gap. Everything else is AMBIGUOUS, with a reason. The samples of one process are treated
as independent; drift between processes does not appear in them. With a fixed least gap of 0.5 %, a drift of 0.25 %
would pass for a difference in one comparison out of six. Therefore the least gap is derived from the same code in
several processes, see floors.py.

Sources: H. B. Mann and D. R. Whitney, Ann. Math. Statist. 18 (1947) 50; S. Holm, Scand. J. Statist. 6 (1979) 65;
B. Efron, Ann. Statist. 7 (1979) 1; N. Cliff, Psychol. Bull. 114 (1993) 494.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

ALPHA = 0.002
LEAST_EFFECT = 0.005
_CONFIDENCE = 0.99
_RESAMPLES, _SEED = 4000, 20240229
_MOST_EXACT = 50

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Samples:
    """Times of one case in microseconds, and the SM clock of each sample in MHz if it was recorded."""

    times_us: tuple[float, ...]
    sm_mhz: tuple[float, ...] | None = None


def pooled(processes: Sequence[Samples]) -> Samples:
    """Pools the samples of several processes that ran the same code; clocks only if all of them have clocks."""
    times = tuple(t for p in processes for t in p.times_us)
    clocks = tuple(mhz for p in processes for mhz in p.sm_mhz or ())
    return Samples(times, clocks if all(p.sm_mhz is not None for p in processes) else None)


@dataclass(frozen=True)
class Contrast:
    """Comparison of B with A in one quantity.

    `ratio` is B's median over A's, (`low`, `high`) its 99 % bootstrap interval, `p` the two-sided p-value of the
    rank-sum test, `effect` Cliff's delta: P(b > a) - P(b < a), from -1 to 1.
    """

    ratio: float
    low: float
    high: float
    p: float
    effect: float


@dataclass(frozen=True)
class Verdict:
    """FASTER, SLOWER, SAME or AMBIGUOUS for B against A, and the numbers it is based on.

    `before_us` is A's median. `confirmed` is True if the verdict is FASTER or SLOWER in cycles too. `p` and `p_cycles`
    are corrected for the number of comparisons; `least` is the smallest gap that counts.
    """

    word: str
    reason: str
    confirmed: bool
    before_us: float
    time: Contrast
    cycles: Contrast | None
    p: float
    p_cycles: float | None
    least: float


def judge(pairs: Sequence[tuple[Samples, Samples]], least: Sequence[float]) -> list[Verdict]:
    """Returns one verdict per pair (A, B); Holm's correction uses the number of pairs.

    `least` is the smallest relative gap that counts, per pair. The result is deterministic: the bootstrap has a fixed
    seed.
    """
    times = [contrast(a.times_us, b.times_us) for a, b in pairs]
    cycles = [
        contrast(_cycles(a), _cycles(b)) if a.sm_mhz is not None and b.sm_mhz is not None else None
        for a, b in pairs
    ]
    in_time = holm([t.p for t in times])
    in_cycles = iter(holm([c.p for c in cycles if c is not None]))
    verdicts = []
    for (a, b), time, cycle, p, gap in zip(pairs, times, cycles, in_time, least, strict=True):
        p_cycles = next(in_cycles) if cycle is not None else None
        enough = 2 / math.comb(len(a.times_us) + len(b.times_us), len(a.times_us)) < ALPHA
        word, reason = _decide(time, cycle, p, p_cycles, gap) if enough else ("AMBIGUOUS", _few(a, b))
        confirmed = word in ("FASTER", "SLOWER") and cycle is not None
        before = float(np.median(a.times_us))
        verdicts.append(Verdict(word, reason, confirmed, before, time, cycle, p, p_cycles, gap))
    return verdicts


def contrast(a: Sequence[float], b: Sequence[float]) -> Contrast:
    """Compares B with A; both must hold at least one positive number."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    low, high = _interval(first, second)
    p, effect = rank_sum(first, second)
    return Contrast(float(np.median(second) / np.median(first)), low, high, p, effect)


def rank_sum(a: Array, b: Array) -> tuple[float, float]:
    """Returns the two-sided p-value of the Mann-Whitney test, and Cliff's delta of `b` against `a`.

    The p-value is exact, even with ties, up to 50 samples in total; above that it is the normal approximation.
    """
    from scipy.stats import mannwhitneyu, rankdata

    ranks = rankdata(np.concatenate([a, b]))
    above = float(ranks[a.size :].sum()) - b.size * (b.size + 1) / 2
    effect = 2 * above / (a.size * b.size) - 1
    if a.size + b.size > _MOST_EXACT:
        if np.ptp(ranks) == 0:
            return 1.0, 0.0
        return float(mannwhitneyu(a, b, alternative="two-sided", method="asymptotic").pvalue), effect
    return _exact(np.rint(2 * ranks).astype(int), a.size), effect


def _exact(ranks: npt.NDArray[np.int_], size: int) -> float:
    """Returns the exact two-sided p-value for the first `size` of the doubled ranks.

    It is the share of all choices of `size` ranks whose sum is at least as far from the mean as theirs.
    """
    whole = int(ranks.sum())
    choices = np.zeros((size + 1, whole + 1))
    choices[0, 0] = 1
    for rank in ranks:
        choices[1:, rank:] += choices[:-1, : whole + 1 - rank].copy()
    mean = whole * size / ranks.size
    far = np.abs(np.arange(whole + 1) - mean) >= abs(float(ranks[:size].sum()) - mean) - 1e-9
    return float(choices[size, far].sum() / choices[size].sum())


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns the p-values corrected by Holm's method, in the given order."""
    corrected, worst = [1.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        worst = max(worst, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = worst
    return corrected


def _interval(a: Array, b: Array) -> tuple[float, float]:
    random = np.random.default_rng(_SEED)
    first, second = (_resampled_medians(values, random) for values in (a, b))
    tail = 50 * (1 - _CONFIDENCE)
    low, high = np.percentile(second / first, (tail, 100 - tail))
    return float(low), float(high)


def _resampled_medians(values: Array, random: np.random.Generator) -> Array:
    """Returns medians of bootstrap samples, without drawing the samples.

    The median's index is an order statistic of uniform numbers, which has a Beta distribution; for an even number of
    samples the next order statistic is drawn too.
    """
    n = values.size
    ordered: Array = np.sort(values)
    middle = (n + 1) // 2
    lower = random.beta(middle, n + 1 - middle, _RESAMPLES)
    below: Array = ordered[np.minimum((n * lower).astype(int), n - 1)]
    if n % 2:
        return below
    upper = 1 - (1 - lower) * random.random(_RESAMPLES) ** (1 / (n - middle))
    above: Array = ordered[np.minimum((n * upper).astype(int), n - 1)]
    return (below + above) / 2


def _cycles(samples: Samples) -> list[float]:
    assert samples.sm_mhz is not None
    return [t * mhz for t, mhz in zip(samples.times_us, samples.sm_mhz, strict=True)]


def _decide(
    time: Contrast, cycles: Contrast | None, p: float, p_cycles: float | None, least: float
) -> tuple[str, str]:
    found = _direction(time, p, least)
    if not found:
        return _unclaimed(time, p, least)
    word = "SLOWER" if found > 0 else "FASTER"
    if cycles is None or p_cycles is None:
        return word, "not confirmed in cycles: clock samples are missing"
    if _direction(cycles, p_cycles, least) != found:
        changes = f"time {percent(time.ratio)}, but cycles {percent(cycles.ratio)} (p = {p_cycles:.1g})"
        return "AMBIGUOUS", f"{changes}: not confirmed, the clock differed"
    return word, ""


def _direction(found: Contrast, p: float, least: float) -> int:
    """Returns 1 if B is clearly above A, -1 if it is clearly below, 0 if neither is shown."""
    large = abs(math.log(found.ratio)) >= math.log1p(least)
    if p >= ALPHA or not large or found.low <= 1 <= found.high:
        return 0
    return 1 if found.ratio > 1 else -1


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


def _few(a: Samples, b: Samples) -> str:
    return f"{len(a.times_us)} and {len(b.times_us)} samples are too few for a verdict; take more"


def percent(ratio: float) -> str:
    """Returns a ratio as a signed change: "+2.00 %" for 1.02."""
    return f"{100 * (ratio - 1):+.2f} %"
