"""The A/A floor: by how much do two processes that run the same code differ, and which gap is more than that?

What drifts from process to process (memory placement, clocks, neighbours) is in no single process's samples. It is
seen where the same code runs in several fresh ones: each case then has a variance of its log medians. Three rounds
know that variance badly, so the cases lend each other strength: the variance of a case is moderated towards the
typical one by as many degrees of freedom as the variances of all cases show them to be alike. Only what drifts
for each case apart can be lent, though: a drift that all cases of a round share was seen as often as there are rounds.
A gap counts where Student's t of it has p < 0.002.

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

_LEAST_VARIANCE = 1e-4**2  # medians of a quantised clock may be equal; 0.01 % is not resolved


@dataclass(frozen=True)
class Spread:
    """Variance of the log medians from process to process, and the degrees of freedom it is known with."""

    variance: float
    freedom: float

    def gap(self, first: int = 1, second: int = 1) -> float:
        """The relative gap that the same code exceeds with p = 0.002, between medians of so many processes."""
        from scipy.stats import t

        quantile = float(t.ppf(1 - ALPHA / 2, self.freedom))
        return math.expm1(min(quantile * math.sqrt(self.variance * (1 / first + 1 / second)), 10.0))


# Until an A/A run has measured it: 0.3 % from process to process, so that a gap counts from 1.3 % on.
ASSUMED = Spread(0.003**2, math.inf)


@dataclass(frozen=True)
class Floors:
    """What the same code was seen to differ by.

    Attributes:
        gaps: relative gaps between the medians of all pairs of processes, for each case.
        spreads: of each case; `typical` serves cases that were not run again.
        conditions: the GPU, driver and clocks that all this holds for.
        processes: the largest number of processes that a case was run in.
    """

    gaps: Mapping[Key, tuple[float, ...]]
    spreads: Mapping[Key, Spread]
    typical: Spread
    conditions: Mapping[str, str]
    processes: int

    def gap(self, key: Key, first: int = 1, second: int = 1, least: float = LEAST_EFFECT) -> float:
        """The smallest gap that counts between medians of so many processes; never below `least`."""
        return max(least, self.spreads.get(key, self.typical).gap(first, second))


def same_code(key: Key, runs: Sequence[Campaign]) -> list[Measured]:
    """The good measurements of a case that are of the last run's source, GPU, driver and clocks."""
    found = [run.cases[key] for run in runs if key in run.cases and run.cases[key].samples]
    return [m for m in found if (m.source, m.conditions) == (found[-1].source, found[-1].conditions)]


def measure_floors(runs: Sequence[Campaign]) -> Floors | None:
    """The floors of runs of the same code; None where no case was run in two processes."""
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
    """The spread of each case, moderated by all, and the typical one."""
    variances = np.array([max(np.var(np.log(m), ddof=1), _LEAST_VARIANCE) for m in medians.values()])
    freedom = np.array([len(m) - 1.0 for m in medians.values()])
    variance, prior = _prior(variances, freedom)
    together, most = float(freedom.sum()), float(freedom.max())
    whole = [m for m in medians.values() if len(m) == most + 1]
    shared = _shared(np.log(np.array(whole)))

    def spread(value: float, own: float) -> Spread:
        apart = min(prior + own, together) or together
        return Spread(value, 1 / (shared**2 / most + (1 - shared) ** 2 / apart))

    if math.isinf(prior):
        posterior = np.full(len(variances), variance)
    else:
        posterior = (prior * variance + freedom * variances) / (prior + freedom)
    spreads = {k: spread(float(v), d) for k, v, d in zip(medians, posterior, freedom, strict=True)}
    return spreads, spread(variance, 0.0)


def _shared(logs: Array) -> float:
    """The share of the variance that all cases have in common, 0 to 1: the mean correlation of two cases.

    `logs` holds the log medians, a row for each case and a column for each process.
    """
    centred = logs - logs.mean(axis=1, keepdims=True)
    sizes = np.sqrt((centred**2).sum(axis=1))
    unit = centred[sizes > 0] / sizes[sizes > 0, None]
    count = len(unit)
    if count < 2:
        return 0.0
    together = float((unit.mean(axis=0) ** 2).sum())
    return min(max((count * together - 1) / (count - 1), 0.0), 1.0)


def _prior(variances: Array, freedom: Array) -> tuple[float, float]:
    """The typical variance, and the degrees of freedom that it is worth for a single case.

    A single case has nothing to lean on: 0. Variances that differ no more than chance makes them: infinite.
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
    """x with trigamma(x) = value > 0, by Newton's method on 1 / trigamma (Smyth's appendix)."""
    from scipy.special import polygamma

    x = 0.5 + 1 / value
    for _ in range(50):
        found = float(polygamma(1, x))
        step = found * (1 - found / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x
