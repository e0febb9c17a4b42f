"""Estimate the floor of a case: the smallest gap between the numbers of two campaigns that counts as a difference.

The number of a campaign is the median of its processes. Drift from process to process (memory placement, clocks,
neighbours) does not appear in the samples of a single process, so each case has a variance of its log times between
the processes of a campaign and of its A/A rounds. Three processes estimate that variance poorly, so the cases of a
regime share information by empirical-Bayes shrinkage (as in limma): the variance of a case is shrunk towards the
typical one, with prior degrees of freedom that follow from how similar the variances of all cases are. Only drift that
is independent between cases adds degrees of freedom this way; a drift common to the cases of a process is observed only
once per process. What the processes of a campaign have in common, and another campaign does not (the clock of a board
that is warm or cool), is not averaged by their median. This drift is a variance of its own between the numbers of runs,
the same for all cases: on an H100 it was 0.2 %, for quiet cases and for noisy ones. It follows from campaigns with
rounds. A gap counts if its Student's t has p < 0.002.

Sources: G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004) 3, sections 3 and 6.2 (moments of the log variances);
F. E. Satterthwaite, Biometrics Bull. 2 (1946) 110 (degrees of freedom of a sum of variances); R. C. Paule and
J. Mandel, J. Res. Natl. Bur. Stand. 87 (1982) 377 (variance between groups of unequal uncertainty).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import numpy as np

from warplog.judge.samples import REGIMES, REST, Campaign, Key, Measured
from warplog.judge.verdicts import LEAST_EFFECT, Array, Noise
from warplog.tables.files import read_table

CaseKey = tuple[str, str, str, str]  # family, variant, case, regime
Runs = Sequence[Sequence[float]]  # times in microseconds, one per process, of each run of the same code

_LEAST_VARIANCE = 1e-4**2  # (0.01 %)^2: medians of a quantised clock can be equal
# Variance of the median of n values of the standard normal distribution, by integration over the joint density of the
# middle ones; beyond the table the asymptotic pi / (2 n), which is a little larger.
_MEDIAN_VARIANCE = (1.0, 0.5, 0.4487, 0.2982, 0.2868, 0.2147, 0.2104, 0.1682, 0.1661, 0.1383, 0.1372, 0.1175)


def median_variance(count: int) -> float:
    """Returns the variance of the median of `count` normal values, relative to that of one of them."""
    return _MEDIAN_VARIANCE[count - 1] if count <= len(_MEDIAN_VARIANCE) else math.pi / (2 * count)


@dataclass(frozen=True)
class Spread:
    """Variances of the log times of a case, with their degrees of freedom.

    `variance` is that between processes, `drift` that between the numbers of runs with infinitely many processes.
    """

    variance: float
    freedom: float
    drift: float = 0.0
    drift_freedom: float = math.inf

    def noise(self, first: Sequence[int] = (1,), second: Sequence[int] = (1,)) -> Noise:
        """Returns what the same code shows between the medians of two sets of processes.

        `first` and `second` are the numbers of processes of each run that is pooled in the two medians.
        """
        own = self.variance * (median_variance(sum(first)) + median_variance(sum(second)))
        drift = self.drift * (_of_runs(first) + _of_runs(second))
        uncertainty = own**2 / self.freedom + drift**2 / self.drift_freedom
        freedom = (own + drift) ** 2 / uncertainty if uncertainty else math.inf
        return Noise(math.sqrt(own + drift), freedom)


def _of_runs(processes: Sequence[int]) -> float:
    """Returns the variance of the mean of runs that are weighted by their processes, relative to that of one run."""
    total = sum(processes)
    return sum((count / total) ** 2 for count in processes)


# Used if no case was measured in several processes: 0.3 % between them, so that single ones differ from 1.3 % on.
ASSUMED = Spread(0.003**2, math.inf)


@dataclass(frozen=True)
class Floors:
    """Differences between processes that run the same code.

    Attributes:
        gaps: per case and regime, the relative gaps between the numbers of all pairs of runs.
        spreads: per case and regime; `typical`, per regime, is used for cases that ran in one process only.
        conditions: the GPU, driver and clocks for which the floors hold.
        processes: the largest number of processes in which a case ran.
    """

    gaps: Mapping[CaseKey, tuple[float, ...]]
    spreads: Mapping[CaseKey, Spread]
    typical: Mapping[str, Spread]
    conditions: Mapping[str, str]
    processes: int

    def noise(
        self, key: Key, regime: str = REST, first: Sequence[int] = (1,), second: Sequence[int] = (1,)
    ) -> Noise:
        """Returns what the same code shows between two medians; see Spread.noise."""
        spread = self.spreads.get((*key, regime)) or self.typical.get(regime, ASSUMED)
        return spread.noise(first, second)

    def gap(
        self,
        key: Key,
        regime: str = REST,
        first: Sequence[int] = (1,),
        second: Sequence[int] = (1,),
        least: float = LEAST_EFFECT,
    ) -> float:
        """Returns the smallest gap that counts between these medians; at least `least`."""
        return max(least, self.noise(key, regime, first, second).gap())


def same_code(key: Key, runs: Sequence[Campaign], regime: str = REST) -> list[Measured]:
    """Returns the measurements of a case in a regime with the source, GPU, driver and clocks of the last of them."""
    found = [run.cases[key] for run in runs if key in run.cases and run.cases[key].numbers(regime)]
    return [m for m in found if (m.source, m.conditions) == (found[-1].source, found[-1].conditions)]


def measure_floors(runs: Sequence[Campaign]) -> Floors | None:
    """Estimates the floors from runs of the same code; None if no case ran in two processes."""
    keys = list(dict.fromkeys(key for run in runs for key in run.cases))
    measured = {(*key, regime): same_code(key, runs, regime) for regime in REGIMES for key in keys}
    times = {key: [m.numbers(key[3]) for m in found] for key, found in measured.items()}
    times = {key: found for key, found in times.items() if sum(map(len, found)) > 1}
    if not times:
        return None
    conditions = measured[next(reversed(times))][-1].conditions
    times = {key: found for key, found in times.items() if measured[key][-1].conditions == conditions}
    spreads: dict[CaseKey, Spread] = {}
    typical: dict[str, Spread] = {}
    for regime in REGIMES:
        if of_regime := {key: found for key, found in times.items() if key[3] == regime}:
            found, typical[regime] = _moderated(of_regime)
            spreads |= found
    gaps = {key: tuple(_gaps([float(np.median(run)) for run in found])) for key, found in times.items()}
    most = max(sum(map(len, found)) for found in times.values())
    return Floors(gaps, spreads, typical, conditions, most)


def table_rows(campaign: Campaign) -> Iterator[dict[str, Any]]:
    """Yields the rows of the table `floors`, without the origin: one per measured case and regime.

    The floor holds between two campaigns with as many processes as this one; it is None if the campaign and its A/A
    rounds ran no case in two processes.
    """
    floors = measure_floors((*campaign.rounds, campaign))
    for key, measured in campaign.cases.items():
        for regime in REGIMES:
            if processes := len(measured.numbers(regime)):
                row = dict(zip(("family", "variant", "case"), key, strict=True))
                floor = floors.gap(key, regime, (processes,), (processes,)) if floors else None
                yield {**row, "regime": regime, "processes": processes, "floor": floor}


def load_table(folder: Path, gpu: str) -> dict[CaseKey, float]:
    """Returns (family, variant, case, regime) -> relative floor of a GPU from the table `floors` in a folder of tables.

    Cases without a floor are left out; a folder of an older campaign, without the table, has none.

    Raises:
        WarplogError: the table is not readable.
    """
    if not any(folder.glob("floors.*")):
        return {}
    table = read_table(folder, "floors").dropna(subset="floor")
    table = table[table["gpu"] == gpu]
    columns = [table[name] for name in ("family", "variant", "case", "regime")]
    keys: Iterator[CaseKey] = zip(*columns, strict=True)
    return dict(zip(keys, map(float, table["floor"]), strict=True))


def _gaps(numbers: Sequence[float]) -> Iterator[float]:
    return (max(a, b) / min(a, b) - 1 for a, b in combinations(numbers, 2))


def _moderated(times: Mapping[CaseKey, Runs]) -> tuple[dict[CaseKey, Spread], Spread]:
    """Returns the shrunken spread of each case, and the typical spread."""
    logs = {key: [np.log(np.array(run)) for run in runs] for key, runs in times.items()}
    pooled = {key: np.concatenate(runs) for key, runs in logs.items()}
    variances = np.array([max(np.var(values, ddof=1), _LEAST_VARIANCE) for values in pooled.values()])
    freedom = np.array([len(values) - 1.0 for values in pooled.values()])
    variance, prior = _prior(variances, freedom)
    if math.isinf(prior):
        posterior = np.full(len(variances), variance)
    else:
        posterior = (prior * variance + freedom * variances) / (prior + freedom)
    total, most, shared = float(freedom.sum()), float(freedom.max()), _shared(pooled)
    drift = _drift(list(logs.values()), posterior)
    runs = {key[0]: len(found) for key, found in sorted(logs.items(), key=lambda case: len(case[1]))}
    drift_freedom = max(sum(count - 1.0 for count in runs.values()), 1.0)  # a family's cases drift together

    def spread(value: float, of_case: float) -> Spread:
        independent = min(prior + of_case, total) or total
        return Spread(value, 1 / (shared**2 / most + (1 - shared) ** 2 / independent), drift, drift_freedom)

    spreads = {k: spread(float(v), float(d)) for k, v, d in zip(times, posterior, freedom, strict=True)}
    return spreads, spread(variance, 0.0)


def _drift(cases: Sequence[Sequence[Array]], variances: Array) -> float:
    """Returns the variance between the numbers of runs that the variance between processes leaves unexplained.

    `cases` holds the log times per run. It is the variance with which the squared deviations of the runs' medians, each
    relative to its own variance, add up to their degrees of freedom; 0 if these explain them, or if every run is of one
    process.
    """
    numbers = []
    for runs, variance in zip(cases, variances, strict=True):
        if 1 < len(runs) < sum(run.size for run in runs):
            of_median = np.array([median_variance(run.size) for run in runs])
            numbers.append((np.array([float(np.median(run)) for run in runs]), float(variance) * of_median))
    freedom = sum(medians.size - 1 for medians, _ in numbers)

    def excess(drift: float) -> float:
        found = 0.0
        for medians, own in numbers:
            weights = 1 / (drift + own)
            found += float((weights * (medians - np.average(medians, weights=weights)) ** 2).sum())
        return found - freedom

    if not numbers or excess(0.0) <= 0:
        return 0.0
    from scipy.optimize import brentq

    enough = sum(float(((medians - medians.mean()) ** 2).sum()) for medians, _ in numbers) / freedom
    return float(brentq(excess, 0.0, enough))


def _shared(logs: Mapping[CaseKey, Array]) -> float:
    """Returns the share of the variance that is common to the cases of a family, which run in the same processes.

    It is the mean correlation of two cases of a family, 0 to 1; `logs` holds the log times of each case.
    """
    most = max(values.size for values in logs.values())
    together, pairs = 0.0, 0
    for _, keys in groupby(sorted(logs), lambda key: key[0]):
        complete = np.array([logs[key] for key in keys if logs[key].size == most])
        if not len(complete):
            continue
        centred = complete - complete.mean(axis=1, keepdims=True)
        sizes = np.sqrt((centred**2).sum(axis=1))
        unit = centred[sizes > 0] / sizes[sizes > 0, None]
        together += float((unit.sum(axis=0) ** 2).sum()) - len(unit)
        pairs += len(unit) * (len(unit) - 1)
    return min(max(together / pairs, 0.0), 1.0) if pairs else 0.0


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
