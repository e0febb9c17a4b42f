"""The time of a kernel at the board's power limit, from the power and the time of steps of 0.1 s.

The controller of the power limit lets power swing by several percent, with a period of about a second, and the time per
launch t follows the power P by way of the clock: t ~ P^-k with k of about 0.5. The mean over a second is therefore no
better than 1 or 2 %. The line through log t over log P of all steps is: on an H200 its residual is 0.6 % of a step.
"""

import math
from collections.abc import Sequence
from statistics import fmean

Step = Sequence[float]  # power in W, and time per launch in microseconds

LEAST_STEPS = 6
_MOST_EXPONENT = 1.0
_MARGIN = 0.02


def times_at_limit(processes: Sequence[Sequence[Step]], limit_w: float | None) -> list[float] | None:
    """Returns the time per launch at the power limit, in microseconds, in each process.

    The exponent is that of all processes. None if the limit is unknown, if there are too few steps for a line, or if
    none of them comes within 2 % of the limit: nothing is extrapolated further.

    Args:
        processes: the steps of each process.
        limit_w: the power limit in W.
    """
    steps = [step for process in processes for step in process]
    if not limit_w or len(steps) < LEAST_STEPS or not all(processes):
        return None
    powers = [power_w for power_w, _ in steps]
    if min(powers) > limit_w * (1 + _MARGIN) or max(powers) < limit_w * (1 - _MARGIN):
        return None
    k = _exponent(steps)
    return [
        math.exp(fmean(math.log(us) + k * math.log(power_w / limit_w) for power_w, us in process))
        for process in processes
    ]


def _exponent(steps: Sequence[Step]) -> float:
    """Returns k of the least-squares line log t = a - k log P, at least 0 and at most 1."""
    x = [math.log(power_w) for power_w, _ in steps]
    y = [math.log(us) for _, us in steps]
    middle_x, middle_y = fmean(x), fmean(y)
    variance = sum((one - middle_x) ** 2 for one in x)
    if variance == 0:
        return 0.0
    slope = sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True)) / variance
    return min(max(-slope, 0.0), _MOST_EXPONENT)
