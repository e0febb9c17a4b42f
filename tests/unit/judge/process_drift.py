"""Simulated campaigns with an offset per process and autocorrelated samples, as real ones have.

These numbers were not measured.
"""

import numpy as np

from warplog.judge.floors import with_times
from warplog.judge.samples import Campaign, Measured, Samples

CONDITIONS = {"gpu_name": "none", "driver": "0", "clocks": "unlocked"}
OFFSET, NOISE, MEMORY, CLOCK = 0.0025, 0.003, 0.6, 1980.0
CASES = {("f", f"v{i // 6}", str(i)): 10.0 * 2 ** (i % 6) for i in range(24)}


def process(random, median_us):
    """Returns the samples of one case in one process: a log-normal offset plus first-order autoregressive noise."""
    count = int(random.integers(20, 100))
    noise = NOISE * random.standard_normal(count)
    for i in range(1, count):
        noise[i] = MEMORY * noise[i - 1] + np.sqrt(1 - MEMORY**2) * noise[i]
    times = median_us * np.exp(random.normal(0, OFFSET) + noise)
    clocks = CLOCK + random.normal(0, 0.2, count)
    return Samples(tuple(times), tuple(clocks))


def measured(*processes, sustained_us=(), source="same"):
    """Returns a valid measurement of a case in these processes."""
    return Measured("ok", "", CONDITIONS, {}, processes, tuple(sustained_us), {}, source)


def campaign(random, factor=1.0, rounds=(), cases=CASES, processes=1, sustained=None):
    """Returns a campaign in which each case ran in `processes` processes; all times are multiplied by `factor`.

    With `sustained`, each process also has a sustained time, that many times as long and with the same offsets.
    """

    def case(us):
        timed = [process(random, factor * us) for _ in range(processes)]
        drifts = np.exp(random.normal(0, OFFSET, processes)) if sustained else ()
        return measured(*timed, sustained_us=[factor * us * sustained * drift for drift in drifts])

    return with_times(Campaign("made up", {key: case(us) for key, us in cases.items()}, rounds=rounds))


def aa_rounds(random, count=3, **options):
    """Returns `count` rounds of the same code, each in fresh processes."""
    return tuple(campaign(random, **options) for _ in range(count))
