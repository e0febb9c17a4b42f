"""Estimate the A/A floor: the largest gap that two processes running the same code are likely to show.

Drift from process to process (memory placement, clocks, neighbours) does not appear in the samples of a single
process. It is estimated by running the same code in several fresh processes: each case then has a variance of its log
medians. Three rounds estimate that variance poorly, so the cases share information by empirical-Bayes shrinkage (as in
limma): the variance of a case is shrunk towards the typical one, with prior degrees of freedom that follow from how
similar the variances of all cases are. Only drift that is independent between cases adds degrees of freedom this way;
a drift common to all cases of a round is observed only once per round. A gap counts if its Student's t has p < 0.002.

Sources: G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004) 3, sections 3 and 6.2 (moments of the log variances);
F. E. Satterthwaite, Biometrics Bull. 2 (1946) 110 (degrees of freedom of a sum of variances).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from warplog.judge.samples import Campaign, Key, Measured
from warplog.judge.verdicts import ALPHA, LEAST_EFFECT, Array

_LEAST_VARIANCE = 1e-4**2  # (0.01 %)^2: medians of a quantised clock can be equal


@dataclass(frozen=True)
class Spread:
    """Variance of the log medians between processes, and its degrees of freedom (`freedom`)."""

    variance: float
    freedom: float

    def gap(self, first: int = 1, second: int = 1) -> float:
        """Returns the relative gap that the same code exceeds with p = 0.002.

        `first` and `second` are the numbers of processes pooled in the two medians.
        """
        from scipy.stats import t

        quantile = float(t.ppf(1 - ALPHA / 2, self.freedom))
        return math.expm1(min(quantile * math.sqrt(self.variance * (1 / first + 1 / second)), 10.0))


# Used until an A/A run has measured the drift: 0.3 % between processes, so that gaps from 1.3 % on count.
ASSUMED = Spread(0.003**2, math.inf)


@dataclass(frozen=True)
class Floors:
    """Differences between processes that run the same code.

    Attributes:
        gaps: per case, the relative gaps between the medians of all pairs of processes.
        spreads: per case; `typical` is used for cases that ran in one process only.
        conditions: the GPU, driver and clocks for which the floors hold.
        processes: the largest number of processes in which a case ran.
    """

    gaps: Mapping[Key, tuple[float, ...]]
    spreads: Mapping[Key, Spread]
    typical: Spread
    conditions: Mapping[str, str]
    processes: int

    def gap(self, key: Key, first: int = 1, second: int = 1, least: float = LEAST_EFFECT) -> float:
        """Returns the smallest gap that counts, between medians of `first` and `second` processes; at least `least`."""
        return max(least, self.spreads.get(key, self.typical).gap(first, second))


def same_code(key: Key, runs: Sequence[Campaign]) -> list[Measured]:
    """Returns the valid measurements of a case with the same source, GPU, driver and clocks as the last one."""
    found = [run.cases[key] for run in runs if key in run.cases and run.cases[key].samples]
    return [m for m in found if (m.source, m.conditions) == (found[-1].source, found[-1].conditions)]


def measure_floors(runs: Sequence[Campaign]) -> Floors | None:
    """Estimates the floors from runs of the same code; None if no case ran in two processes."""
    keys = list(dict.fromkeys(key for run in runs for key in run.cases))
    measured = {key: same_code(key, runs) for key in keys}
    measured = {key: found for key, found in measured.items() if len(found) > 1}
    if not measured:
        return None
    conditions = next(reversed(measured.values()))[-1].conditions
    medians = {
        key: [float(np.median(m.samples.times_us)) for m in found if m.samples]
        for key, found in measured.items()
        if found[-1].conditions == conditions
    }
    gaps = {k: tuple(max(a, b) / min(a, b) - 1 for a, b in combinations(m, 2)) for k, m in medians.items()}
    spreads, typical = _moderated(medians)
    return Floors(gaps, spreads, typical, conditions, max(map(len, medians.values())))


def _moderated(medians: Mapping[Key, Sequence[float]]) -> tuple[dict[Key, Spread], Spread]:
    """Returns the shrunken spread of each case, and the typical spread."""
    variances = np.array([max(np.var(np.log(m), ddof=1), _LEAST_VARIANCE) for m in medians.values()])
    freedom = np.array([len(m) - 1.0 for m in medians.values()])
    variance, prior = _prior(variances, freedom)
    total, most = float(freedom.sum()), float(freedom.max())
    complete = [m for m in medians.values() if len(m) == most + 1]
    shared = _shared(np.log(np.array(complete)))

    def spread(value: float, own: float) -> Spread:
        independent = min(prior + own, total) or total
        return Spread(value, 1 / (shared**2 / most + (1 - shared) ** 2 / independent))

    if math.isinf(prior):
        posterior = np.full(len(variances), variance)
    else:
        posterior = (prior * variance + freedom * variances) / (prior + freedom)
    spreads = {k: spread(float(v), d) for k, v, d in zip(medians, posterior, freedom, strict=True)}
    return spreads, spread(variance, 0.0)


def _shared(logs: Array) -> float:
    """Returns the share of the variance that is common to all cases, 0 to 1: the mean correlation of two cases.

    `logs` holds the log medians, one row per case and one column per process.
    """
    centred = logs - logs.mean(axis=1, keepdims=True)
    sizes = np.sqrt((centred**2).sum(axis=1))
    unit = centred[sizes > 0] / sizes[sizes > 0, None]
    count = len(unit)
    if count < 2:
        return 0.0
    common = float((unit.mean(axis=0) ** 2).sum())
    return min(max((count * common - 1) / (count - 1), 0.0), 1.0)


def _prior(variances: Array, freedom: Array) -> tuple[float, float]:
    """Returns the typical variance and the prior degrees of freedom it adds to a case.

    These are 0 if there is only one case, and infinite if the variances differ no more than by chance.
    """
    from scipy.special import digamma, polygamma

    if len(variances) == 1:
        return float(variances[0]), 0.0
    logs = np.log(variances) - digamma(freedom / 2) + np.log(freedom / 2)
    beyond_chance = float(np.var(logs, ddof=1) - np.mean(polygamma(1, freedom / 2)))
    if beyond_chance <= 0:
        return float((variances * freedom).sum() / freedom.sum()), math.inf
    prior = 2 * _inverse_trigamma(beyond_chance)
    shift = float(digamma(prior / 2)) - math.log(prior / 2)
    return math.exp(float(logs.mean()) + shift), prior


def _inverse_trigamma(value: float) -> float:
    """Returns x with trigamma(x) = value > 0, by Newton's method on 1 / trigamma (Smyth's appendix)."""
    from scipy.special import polygamma

    x = 0.5 + 1 / value
    for _ in range(50):
        found = float(polygamma(1, x))
        step = found * (1 - found / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x
