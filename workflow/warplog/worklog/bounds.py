"""What bounds a kernel: the ceiling that it comes closest to, latency, or a grid that does not fill the GPU.

The throughputs, and the threshold of 60 % below which latency is assumed to be the bound, follow the section
"GPU Speed Of Light Throughput" of the Nsight Compute Profiling Guide.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from warplog.metrics import STALL_REASONS, dominant_stall, occupancy_limiter
from warplog.worklog.decomposition import busy_share

_MEMORY_SPEED = "memory_throughput_pct"
_MEMORY = {
    "dram_throughput_pct": "device memory",
    "l2_throughput_pct": "L2",
    "l1_throughput_pct": "L1 and shared memory",
}
_PIPES = {
    f"pipe_{pipe.lower()}_pct": f"the {pipe} pipe" for pipe in ("FMA", "ALU", "LSU", "FP64", "tensor", "XU")
}
_COMPUTE = {"sm_throughput_pct": "the SM's issue slots", **_PIPES}
_LIMITS = tuple(
    f"occupancy_limit_{resource}_blocks"
    for resource in ("warps", "registers", "shared_memory", "blocks", "barriers")
)
COUNTERS = (
    _MEMORY_SPEED,
    *_MEMORY,
    *_COMPUTE,
    *_LIMITS,
    *(f"stall_{reason}_pct" for reason in STALL_REASONS),
    *("theoretical_occupancy_pct", "achieved_occupancy_pct", "waves_per_sm"),
    *("instructions_executed", "ipc", "gpu_cycles"),
)
_NEAR_PCT = 60.0
_FILLED = 0.8


@dataclass(frozen=True)
class Bound:
    """What bounds a variant's longest kernel at one case.

    Attributes:
        kind: "memory", "compute", "latency", "launch" (the grid does not fill the GPU), or "" (no counters).
        ceiling: The closest ceiling.
        ceiling_pct: How much of it is used.
        stall: The warp state with the most cycles, apart from `selected`.
        stall_pct: Its share of a warp's cycles.
        theoretical_pct: Theoretical occupancy.
        achieved_pct: Achieved occupancy.
        limiters: The resources that limit the theoretical occupancy.
        gap: Why the bound is unknown; "" if it is known.
    """

    variant: str
    kind: str
    ceiling: str = ""
    ceiling_pct: float = math.nan
    stall: str = ""
    stall_pct: float = math.nan
    theoretical_pct: float = math.nan
    achieved_pct: float = math.nan
    limiters: tuple[str, ...] = ()
    gap: str = ""


def bound(variant: str, values: Mapping[str, float], sms: float) -> Bound:
    """Returns what bounds a kernel with the counters `values`; missing counters are NaN or absent."""
    rows = [{"metric": name, "value": value} for name, value in values.items() if not math.isnan(value)]
    ceilings = {name: values.get(name, math.nan) for name in (_MEMORY_SPEED, *_MEMORY, *_COMPUTE)}
    known = {name: value for name, value in ceilings.items() if not math.isnan(value)}
    if not known:
        return Bound(variant, "", gap="the tables contain no throughput metrics for it")
    parts = _MEMORY if _MEMORY_SPEED in known else ()  # whose busiest the memory throughput covers
    nearest = max((name for name in known if name not in parts), key=known.__getitem__)
    stall = dominant_stall(rows) or ""
    return Bound(
        variant=variant,
        kind=_kind(nearest, known[nearest], values, sms),
        ceiling=_name(nearest, known),
        ceiling_pct=known[nearest],
        stall=stall,
        stall_pct=values.get(f"stall_{stall}_pct", math.nan),
        theoretical_pct=values.get("theoretical_occupancy_pct", math.nan),
        achieved_pct=values.get("achieved_occupancy_pct", math.nan),
        limiters=occupancy_limiter(rows),
    )


def _kind(nearest: str, pct: float, values: Mapping[str, float], sms: float) -> str:
    if pct >= _NEAR_PCT:
        return "compute" if nearest in _COMPUTE else "memory"
    unfilled = values.get("waves_per_sm", math.nan) < 1 or busy_share(values, sms) < _FILLED
    return "launch" if unfilled else "latency"


def _name(nearest: str, known: Mapping[str, float]) -> str:
    """Returns the ceiling's name; for SM and memory throughput, that of the part that sets it (within 1 %), if any."""
    parts = {"sm_throughput_pct": _PIPES, _MEMORY_SPEED: _MEMORY}.get(nearest, {})
    own = {**_MEMORY, **_COMPUTE, _MEMORY_SPEED: "the memory system"}[nearest]
    return next((name for part, name in parts.items() if known.get(part, 0.0) >= 0.99 * known[nearest]), own)
