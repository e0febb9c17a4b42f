"""Campaigns of made-up samples with what real ones have: an offset for each process, and samples that hang together.

No machine measured these numbers.
"""

import numpy as np

from warplog.judge.samples import Campaign, Measured
from warplog.judge.verdicts import Samples

CONDITIONS = {"gpu_name": "none", "driver": "0", "clocks": "unlocked"}
OFFSET, NOISE, MEMORY, CLOCK = 0.0025, 0.003, 0.6, 1980.0
CASES = {("f", f"v{i // 6}", str(i)): 10.0 * 2 ** (i % 6) for i in range(24)}


def process(random, median_us, source="same"):
    """One process's samples of one case: a log-normal offset of its own, and noise of first-order memory."""
    count = int(random.integers(20, 100))
    noise = NOISE * random.standard_normal(count)
    for i in range(1, count):
        noise[i] = MEMORY * noise[i - 1] + np.sqrt(1 - MEMORY**2) * noise[i]
    times = median_us * np.exp(random.normal(0, OFFSET) + noise)
    clocks = CLOCK + random.normal(0, 0.2, count)
    return Measured("ok", "", CONDITIONS, {}, Samples(tuple(times), tuple(clocks)), {}, source)


def campaign(random, factor=1.0, rounds=(), cases=CASES):
    """All cases in one process each, `factor` times as long as usual."""
    return Campaign(
        "made up", {key: process(random, factor * us) for key, us in cases.items()}, rounds=rounds
    )


def aa_rounds(random, count=3, cases=CASES):
    """The same code again in `count` fresh processes a case."""
    return tuple(campaign(random, cases=cases) for _ in range(count))
