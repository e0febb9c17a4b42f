"""What bounds a kernel, and what limits its occupancy, as sentences."""

import math
from collections.abc import Mapping

from warplog import occupancy
from warplog.bounds import Bound
from warplog.errors import WarplogError
from warplog.step_sentences import number, share_text, waits_for

LAUNCH = ("registers_per_thread", "block_threads", "shared_bytes_per_block", "theoretical_occupancy_pct")
TRAFFIC = ("dram_bytes", "shared_wavefronts", "shared_wavefronts_excess")
_WHOLE_PCT = 99.95
_SAME_PCT = 0.1
_TOLD_CONFLICTS = 0.05


def bound_sentences(bound: Bound) -> tuple[str, ...]:
    """The nearest ceiling and the longest state of the variant's warps."""
    if bound.gap:
        return (f"What bounds it is not known: {bound.gap}.",)
    used = f"{bound.ceiling}, {number(bound.ceiling_pct)} % used"
    near = {
        "latency": f"No ceiling is near (the nearest is {used}): latency is the first suspect.",
        "launch": f"No ceiling is near (the nearest is {used}): the grid does not fill the GPU.",
    }
    memory = "device memory" if bound.ceiling == "device memory" else "on-chip memory"
    kind = memory if bound.kind == "memory" else bound.kind
    told = [near.get(bound.kind, f"The nearest ceiling is {used}: bound by {kind}.")]
    if bound.stall:
        share = share_text(bound.stall_pct / 100)
        state = f"{bound.stall} ({share} of their cycles), waiting for {waits_for(bound.stall)}"
        told.append(f"Issuing aside, its warps are longest in {state}.")
    return tuple(told)


def occupancy_sentences(
    bound: Bound, launch: Mapping[str, float], capability: tuple[int, int]
) -> tuple[str, ...]:
    """How many warps there are, what limits them, and what would let an SM hold more.

    `launch` are the metrics LAUNCH of the kernel. What would is computed by hand and said only where the same
    computation gives the occupancy that was captured.
    """
    if bound.gap or math.isnan(bound.theoretical_pct):
        return ()
    held = f"{number(bound.achieved_pct)} % were filled"
    if bound.theoretical_pct >= _WHOLE_PCT:
        return (f"The launch can fill all of an SM's warp slots; {held}.",)
    limits = " and ".join(name.replace("_", " ") for name in bound.limiters)
    room = f"The launch can fill {number(bound.theoretical_pct)} % of an SM's warp slots"
    told = [f"{room}{f', limited by {limits}' if limits else ''}; {held}."]
    return (*told, *_lift(launch, capability))


def traffic_sentences(values: Mapping[str, float], compulsory_bytes: float) -> tuple[str, ...]:
    """Device-memory traffic beside what the algorithm must move, and what bank conflicts cost.

    `values` are the metrics TRAFFIC; a conflict is told from a twentieth of the wavefronts.
    """
    moved, whole, excess = (values.get(name, math.nan) for name in TRAFFIC)
    told = []
    if moved > 0 and compulsory_bytes > 0:
        times = moved / compulsory_bytes
        least = f"{f'{times:.1f}' if times < 9.95 else f'{times:.0f}'} times the compulsory {_bytes(compulsory_bytes)}"
        told.append(f"It moves {_bytes(moved)} to and from device memory, {least}.")
    if excess >= _TOLD_CONFLICTS * whole > 0:
        share = share_text(excess / whole)
        told.append(f"Bank conflicts cause {share} of its {number(whole)} passes through shared memory.")
    return tuple(told)


def _bytes(count: float) -> str:
    return f"{number(count)}B" if count >= 1e4 else f"{count:.0f} B"


def _lift(metrics: Mapping[str, float], capability: tuple[int, int]) -> list[str]:
    registers, threads, shared, pct = (metrics.get(name, math.nan) for name in LAUNCH)
    limits = occupancy.LIMITS.get(capability)
    if limits is None or math.isnan(registers + threads + shared + pct):
        return []
    launch = (int(registers), int(threads), max(0, int(shared) - limits.reserved_shared_bytes), capability)
    try:
        if abs(occupancy.theoretical(*launch).occupancy_pct - pct) > _SAME_PCT:
            return []
        lift = occupancy.lift(*launch)
    except WarplogError:
        return []
    return [f"That is {lift}."] if lift else []
