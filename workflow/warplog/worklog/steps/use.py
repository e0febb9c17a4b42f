"""How a step changes the use of the GPU: its busiest units, their traffic, and the blocks on an SM."""

import math
from collections.abc import Sequence

from warplog.worklog import bounds
from warplog.worklog.decomposition import Change, Use, Values

COUNTERS = (*bounds.COUNTERS, "issue_active_pct", "dram_bytes", "l2_bytes")
BLOCKS = "blocks_per_sm"
_TENSOR = "pipe_tensor_pct"
# The traffic of a unit, which is told with it from a change of 5 % on; that of others only from a factor of 1.5 on.
_TRAFFIC_OF = {"dram_throughput_pct": "dram_bytes", "l2_throughput_pct": "l2_bytes"}
_LEAST_TRAFFIC, _LARGE_TRAFFIC = 1.05, 1.5
_LEAST_POINTS = 2.0
_IN_USE_PCT = 1.0
# Where schedulers issue in less than a fifth of the cycles before and after, instructions do not set the time.
_IDLE_PCT = 20.0


def use(before: Values, after: Values, sms: float) -> Use:
    """Returns how the use of the GPU changes between two kernels, as far as the counters COUNTERS are known.

    The units are the busiest one before and the tensor pipe if both kernels use it; those that change by less than two
    percentage points are left out.
    """
    pair = (before, after)
    known = [bounds.ceilings(values, sms) for values in pair]
    top = bounds.busiest(known[0])
    tensor = all(one.get(_TENSOR, 0.0) >= _IN_USE_PCT for one in known)
    units = _changes([top, *([_TENSOR] if tensor else [])], known)
    traffic = [
        change
        for change in _changes(["l2_bytes", "dram_bytes"], pair)
        if _times(change) >= (_LEAST_TRAFFIC if change.name == _TRAFFIC_OF.get(top) else _LARGE_TRAFFIC)
    ]
    blocks = _changes([BLOCKS], [{BLOCKS: bounds.blocks_per_sm(values)} for values in pair])
    return Use(
        units=tuple(one for one in units if abs(one.after - one.before) >= _LEAST_POINTS),
        traffic=tuple(traffic),
        blocks=next((one for one in blocks if one.before != one.after), None),
        idle=all(values.get("issue_active_pct", math.inf) < _IDLE_PCT for values in pair),
    )


def _changes(names: Sequence[str], pair: Sequence[Values]) -> list[Change]:
    """Returns the changes of what is known on both sides, each once."""
    found = [Change(n, *(one.get(n, math.nan) for one in pair)) for n in dict.fromkeys(names)]
    return [one for one in found if not math.isnan(one.before + one.after)]


def _times(change: Change) -> float:
    """Returns how many times larger the larger value is; 0 if one of them is 0."""
    low, high = sorted((change.before, change.after))
    return high / low if low > 0 else 0.0
