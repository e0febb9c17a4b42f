"""What the same code shows from run to run, estimated from the processes in which each case was measured.

A time is the median of its processes, and two things move it. Processes differ from each other (memory placement,
clocks, neighbours): each case has a variance of its log times between processes. Three processes estimate it poorly, so
the cases share information by empirical-Bayes shrinkage: the variance of a case is drawn towards the typical one, with
prior degrees of freedom that follow from how similar the variances of all cases are. And all processes of a run share
what another run does not: the clock of a board that is warm or cool, the empty launch that is subtracted. Their median
does not average that. It cannot be estimated from one run, so it is a constant: 0.3 % and 0.05 us, which A/A rounds
on H100s do not exceed (workflow/docs/judging.md).

Sources: G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004) 3, sections 3 and 6.2 (moments of the log variances);
F. E. Satterthwaite, Biometrics Bull. 2 (1946) 110 (degrees of freedom of a sum of variances); N. Otsu, IEEE Trans.
Syst. Man Cybern. 9 (1979) 62 (the split into two groups with the least variance within).
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from warplog.analysis.verdicts import BETWEEN_PROCESSES, DRIFT, Noise, Timed

Array = npt.NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)
Runs = Sequence[Sequence[float]]  # times in microseconds, one per process, of each run of the same code

DRIFT_US = 0.05
_LEAST_VARIANCE = 1e-4**2  # (0.01 %)^2: medians of a quantised clock can be equal
_LEAST_OF_GROUPS, _BETWEEN_GROUPS = 6, 0.9
# Variance of the median of n values of the standard normal distribution, by integration over the joint density of the
# middle ones; beyond the table the asymptotic pi / (2 n), which is a little larger.
_MEDIAN_VARIANCE = (1.0, 0.5, 0.4487, 0.2982, 0.2868, 0.2147, 0.2104, 0.1682, 0.1661, 0.1383, 0.1372, 0.1175)


def median_variance(count: int) -> float:
    """Returns the variance of the median of `count` normal values, relative to that of one of them."""
    return _MEDIAN_VARIANCE[count - 1] if count <= len(_MEDIAN_VARIANCE) else math.pi / (2 * count)


@dataclass(frozen=True)
class Spread:
    """The variance of the log times of a case between processes, with its degrees of freedom."""

    variance: float
    freedom: float = math.inf

    def timed(self, runs: Runs) -> Timed:
        """Returns the time of a measurement, the median of all processes of its runs; there is at least one."""
        processes = np.array([us for run in runs for us in run])
        us, count = float(np.median(processes)), len(processes)
        own = self.variance * median_variance(count)
        shared = (DRIFT**2 + (DRIFT_US / us) ** 2) * sum((len(run) / count) ** 2 for run in runs)
        freedom = (own + shared) ** 2 * self.freedom / own**2 if own else math.inf
        return Timed(us, Noise(math.sqrt(own + shared), freedom, range_of_groups(processes)))


ASSUMED = Spread(BETWEEN_PROCESSES**2)  # if no case was measured in several processes


def range_of_groups(processes: Array) -> float:
    """Returns the range of the log times of processes that form two groups, of two or more each; else 0.

    They do if the split into two groups explains nine tenths of their variance; of normal values, it explains about
    two thirds.
    """
    logs: Array = np.sort(np.log(processes))
    count = len(logs)
    total = float(((logs - logs.mean()) ** 2).sum())
    if count < _LEAST_OF_GROUPS or total < count * _LEAST_VARIANCE:
        return 0.0
    sums, below = np.cumsum(logs)[1 : count - 2], np.arange(2, count - 1)
    between = (sums - below * logs.mean()) ** 2 * count / (below * (count - below))
    return float(logs[-1] - logs[0]) if between.max() > _BETWEEN_GROUPS * total else 0.0


def estimate(times: Mapping[Key, Runs]) -> tuple[dict[Key, Spread], Spread] | None:
    """Returns the spread of each case that ran in several processes, and the typical one; None without such a case.

    The processes of all runs of a case count together.
    """
    logs = {key: np.log(np.concatenate([np.asarray(run) for run in runs])) for key, runs in times.items()}
    logs = {key: values for key, values in logs.items() if len(values) > 1}
    if not logs:
        return None
    variances = np.array([max(float(np.var(values, ddof=1)), _LEAST_VARIANCE) for values in logs.values()])
    freedom = np.array([len(values) - 1.0 for values in logs.values()])
    typical, prior = _prior(variances, freedom)
    posterior = (
        np.full(len(variances), typical)
        if math.isinf(prior)
        else (prior * typical + freedom * variances) / (prior + freedom)
    )
    total = float(freedom.sum())
    spreads = {
        key: Spread(float(variance), min(prior + own, total))
        for key, variance, own in zip(logs, posterior, freedom, strict=True)
    }
    return spreads, Spread(typical, min(prior, total) or total)


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
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x
