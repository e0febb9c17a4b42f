"""How a step changes the use of the GPU: its busiest units, their traffic, and the blocks on an SM."""

import math
from collections.abc import Sequence

from warplog.analysis import bounds
from warplog.analysis.decomposition import Change, Use, Values

_SECTORS = ("global_load_sectors_per_request", "global_store_sectors_per_request")
_BLOCKS, _WAVES, _OCCUPANCY = "grid_blocks", "waves_per_sm", "theoretical_occupancy_pct"
_EXCESS = "shared_wavefronts_excess"
COUNTERS = (*bounds.COUNTERS, *_SECTORS, _BLOCKS, bounds.ISSUE, "dram_bytes", _EXCESS)
BLOCKS = "blocks_per_sm"
_TENSOR = "pipe_tensor_pct"
# The traffic of a unit, which is told with it from a change of 5 % on; that of others only from a factor of 1.5 on.
TRAFFIC_OF = {name: moved for unit, (moved, ceiling) in bounds.RATES.items() for name in (unit, ceiling)}
_LEAST_TRAFFIC, _LARGE_TRAFFIC = 1.05, 1.5
_LEAST_POINTS = 2.0
_LEAST_EXCESS = (
    0.02  # of the cycles, for excess wavefronts to take time: the shared memory of an SM serves one a cycle
)
_FULL, _MORE_WAVES = 1.0, 2.0
_IN_USE_PCT = 1.0
# Where schedulers issue in less than a fifth of the cycles, or another unit is used three times as much, before and
# after, instructions do not set the time. A warp that waits may execute more of them, since it polls.
_IDLE_PCT, _IDLE_BESIDE = 20.0, 3.0


def use(before: Values, after: Values, sms: float) -> Use:
    """Returns how the use of the GPU changes between two kernels, as far as the counters COUNTERS are known.

    The units are the busiest ones before and after, and the tensor pipe if both kernels use it; those that change by
    less than two percentage points are left out, and so are L1/TEX and an SM's unit without a name, of which two
    kernels may use different ones.
    """
    pair = (before, after)
    used_pct = [bounds.ceilings(values, sms) for values in pair]
    tops = [bounds.busiest(ceilings) for ceilings in used_pct]
    tensor = all(ceilings.get(_TENSOR, 0.0) >= _IN_USE_PCT for ceilings in used_pct)
    units = _changes([*tops, *([_TENSOR] if tensor else [])], used_pct)
    moved = {change.name: change for change in _changes(["l2_bytes", "dram_bytes"], pair)}
    near = {
        TRAFFIC_OF.get(top)
        for top, ceilings in zip(tops, used_pct, strict=True)
        if ceilings.get(top, 0.0) >= _IN_USE_PCT
    }
    traffic = [
        change
        for change in moved.values()
        if _times(change) >= (_LEAST_TRAFFIC if change.name in near else _LARGE_TRAFFIC)
    ]
    blocks = _changes([BLOCKS], [{BLOCKS: bounds.blocks_per_sm(values)} for values in pair])
    occupancy = _differing(_changes([_OCCUPANCY], pair))
    return Use(
        units=tuple(
            change
            for change in units
            if abs(change.after - change.before) >= _LEAST_POINTS
            and change.name not in (bounds.L1, bounds.SM)
        ),
        traffic=tuple(traffic),
        blocks=_differing(blocks) if occupancy else None,
        occupancy=occupancy,
        grid=_grid(pair),
        sectors=tuple(change for change in _changes(_SECTORS, pair) if _times(change) >= _LARGE_TRAFFIC),
        excess=_excess(pair, sms),
        idle=all(_is_idle(values, ceilings) for values, ceilings in zip(pair, used_pct, strict=True)),
    )


def _is_idle(values: Values, ceilings: Values) -> bool:
    """Returns whether the schedulers of a kernel issue so rarely that its instructions do not set its time."""
    issuing = ceilings.get(bounds.ISSUE, math.inf)
    return values.get(bounds.ISSUE, math.inf) < _IDLE_PCT or _IDLE_BESIDE * issuing <= max(
        ceilings.values(), default=0.0
    )


def _excess(pair: Sequence[Values], sms: float) -> Change | None:
    """Returns the excess shared wavefronts, if the kernel with more of them spends at least 2 % of its cycles on it."""
    changed = next(iter(_changes([_EXCESS], pair)), None)
    if changed is None:
        return None
    more = pair[0] if changed.before > changed.after else pair[1]
    cycles = sms * more.get("gpu_cycles", math.nan)
    return changed if abs(changed.before - changed.after) >= _LEAST_EXCESS * cycles else None


def _grid(pair: Sequence[Values]) -> tuple[Change, Change] | None:
    """Returns blocks and waves of two grids of which one is less than a wave and less than half of the other."""
    changes = _changes([_BLOCKS, _WAVES], pair)
    if len(changes) < 2:
        return None
    waves = changes[1]
    fills = min(waves.before, waves.after) < _FULL and _times(waves) >= _MORE_WAVES
    return (changes[0], waves) if fills else None


def _differing(changes: Sequence[Change]) -> Change | None:
    return next((change for change in changes if round(change.before, 1) != round(change.after, 1)), None)


def _changes(names: Sequence[str], pair: Sequence[Values]) -> list[Change]:
    """Returns the changes of what is known on both sides, each once."""
    changes = [Change(n, *(side.get(n, math.nan) for side in pair)) for n in dict.fromkeys(names)]
    return [change for change in changes if not math.isnan(change.before + change.after)]


def _times(change: Change) -> float:
    """Returns how many times larger the larger value is; 0 if one of them is 0."""
    low, high = sorted((change.before, change.after))
    return high / low if low > 0 else 0.0
