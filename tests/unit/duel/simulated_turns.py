"""Turns without a GPU: launches with the jitter that was measured, read from a clock that advances in steps.

What was measured on an H100, in turns at rest of one second: processes of the same code differ by up to 0.014 % from
14 us on, an effect of 1 % by up to 0.15 % between processes, and the mean of 600 to 2,000 blocks has a standard error
of 0.01 % at 100 us and above; the clock of events steps by 0.032 us.
"""

import math

import numpy as np

from warplog.duel.evidence import REST, Prior, Rule, estimate
from warplog.records.requested.duel import Estimate, Window

STEP_US = 0.032
BETWEEN = 1.4e-4  # standard deviation of the log ratio of the same code between processes
OF_EFFECT = 0.15  # that of an effect, relative to the effect
# Time in microseconds: blocks in 0.75 s, and the relative standard deviation of a launch.
CELLS = {3.0: (1500, 0.01), 10.0: (1300, 0.006), 100.0: (800, 0.004), 1000.0: (150, 0.001)}
OUTLIERS = 0.01  # share of launches that take 5 % longer


def window_of(values: Estimate, us: float, process: int, blocks: int) -> Window:
    return Window(
        process=process,
        seed=0,
        addresses=(),
        seconds=0.75,
        blocks=blocks,
        time=values,
        cycles=None,
        a_us=us,
        b_us=us * math.exp(values.log_ratio),
        a_mhz=None,
        b_mhz=None,
        step_us=STEP_US,
    )


def process(rng: np.random.Generator, us: float, effect: float, between: float) -> Estimate:
    """Returns what a process says if B takes `effect` longer than A: blocks of ABBA, each launch at a random phase."""
    blocks, jitter = CELLS[us]
    own = effect * (1 + OF_EFFECT * rng.standard_normal()) + between * rng.standard_normal()
    times = us * (1 + jitter * rng.standard_normal((blocks, 4)))
    times *= 1 + 0.05 * (rng.random((blocks, 4)) < OUTLIERS)
    times[:, 1:3] *= 1 + own
    seen = np.floor(times / STEP_US + rng.random((blocks, 4))) * STEP_US
    return estimate(np.log(seen[:, 1:3].sum(axis=1) / seen[:, ::3].sum(axis=1)), STEP_US / us)


def duel(
    rng: np.random.Generator,
    us: float,
    effect: float,
    between: float = BETWEEN,
    prior: Prior = REST,
    looks: int = 3,
    margin: float = 0.005,
) -> tuple[str, int]:
    """Returns the word and the number of processes of a duel."""
    rule = Rule(prior, margin, looks)
    windows: list[Window] = []
    while not rule.is_over(windows):
        values = process(rng, us, effect, between)
        windows.append(window_of(values, us, len(windows) + 1, CELLS[us][0]))
    return rule.judge(windows).word, len(windows)
