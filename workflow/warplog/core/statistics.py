"""Robust summary statistics of time samples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# The interquartile range of a normal distribution is 1.349 standard deviations.
_IQR_OF_NORMAL = 1.349
# The standard error of the median of many normal samples, over that of their mean: sqrt(pi / 2).
MEDIAN_EFFICIENCY = 1.2533


@dataclass(frozen=True)
class Summary:
    """Location and spread of samples: times in microseconds, rel_spread dimensionless.

    rel_spread is a robust relative standard deviation, (q3 - q1) / (1.349 median).
    """

    median_us: float
    q1_us: float
    q3_us: float
    min_us: float
    max_us: float
    mean_us: float
    rel_spread: float
    samples: int


def summarise(samples_us: Sequence[float]) -> Summary:
    """Summarises one or more samples.

    Raises:
        ValueError: There are no samples, or one of them is not finite.
    """
    values = np.asarray(samples_us, dtype=np.float64)
    if values.size == 0 or not np.isfinite(values).all():
        raise ValueError("a summary requires at least one sample, and all samples finite")
    q1, median, q3 = (float(q) for q in np.percentile(values, (25, 50, 75)))
    return Summary(
        median_us=median,
        q1_us=q1,
        q3_us=q3,
        min_us=float(values.min()),
        max_us=float(values.max()),
        mean_us=float(values.mean()),
        rel_spread=(q3 - q1) / (_IQR_OF_NORMAL * median) if median > 0 else 0.0,
        samples=int(values.size),
    )
