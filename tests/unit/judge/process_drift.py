"""Simulated campaigns with an offset per process and autocorrelated samples, as real ones have.

These numbers were not measured.
"""

import numpy as np

from warplog.judge.samples import Campaign, Measured
from warplog.judge.verdicts import Samples

CONDITIONS = {"gpu_name": "none", "driver": "0", "clocks": "unlocked"}
OFFSET, NOISE, MEMORY, CLOCK = 0.0025, 0.003, 0.6, 1980.0
CASES = {("f", f"v{i // 6}", str(i)): 10.0 * 2 ** (i % 6) for i in range(24)}


def process(random, median_us, source="same"):
    """Returns the samples of one case in one process: a log-normal offset plus first-order autoregressive noise."""
    count = int(random.integers(20, 100))
    noise = NOISE * random.standard_normal(count)
    for i in range(1, count):
        noise[i] = MEMORY * noise[i - 1] + np.sqrt(1 - MEMORY**2) * noise[i]
    times = median_us * np.exp(random.normal(0, OFFSET) + noise)
    clocks = CLOCK + random.normal(0, 0.2, count)
    return Measured("ok", "", CONDITIONS, {}, Samples(tuple(times), tuple(clocks)), {}, source)


def campaign(random, factor=1.0, rounds=(), cases=CASES):
    """Returns a campaign with one process per case; all times are multiplied by `factor`."""
    return Campaign(
        "made up", {key: process(random, factor * us) for key, us in cases.items()}, rounds=rounds
    )


def aa_rounds(random, count=3, cases=CASES):
    """Returns `count` rounds of the same code, each case in a fresh process."""
    return tuple(campaign(random, cases=cases) for _ in range(count))
