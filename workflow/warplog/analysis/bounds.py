"""What bounds a kernel: a ceiling, contended atomics, latency, or a grid that does not fill the GPU.

The throughputs, and the threshold of 60 % below which latency is assumed to be the bound, follow the section "GPU
Speed Of Light Throughput" of the Nsight Compute Profiling Guide and ncu's rules. A ceiling is the bound from 90 % on,
since a kernel at 80 % of a pipe may still gain a tenth. For device memory, 80 % is enough, as in ncu's rules: refreshes
and changes between reading and writing keep its peak out of reach. Where the campaign measured what kernels reach of
device memory and L2, that takes the place of their peaks if the bytes of the kernel are a larger share of it than what
ncu counts of the peak, which may be of a unit that is busy beyond bytes.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from warplog.metrics import STALL_REASONS, dominant_stall, occupancy_limiter
from warplog.metrics.banks import WAVEFRONTS, shared_wavefronts
from warplog.metrics.occupancy import busy_share
from warplog.tables.conclusions import Bound

_MEMORY_SPEED = "memory_throughput_pct"  # the use of the busiest part of the memory system
L1 = "l1_throughput_pct"  # the use of the busiest sub-unit of L1/TEX, whichever that is
DRAM, L2 = "dram_throughput_pct", "l2_throughput_pct"
_MEMORY = (DRAM, L2, L1)
# The bytes of a unit, and the measured ceiling of their rate.
RATES = {DRAM: ("dram_bytes", "dram_gbytes_per_s"), L2: ("l2_bytes", "l2_gbytes_per_s")}
CEILINGS = {metric: ceiling for metric, (_, ceiling) in RATES.items()}
OF_MEMORY = frozenset((*CEILINGS, *CEILINGS.values()))
PIPES = tuple(f"pipe_{pipe}_pct" for pipe in ("fma", "alu", "lsu", "fp64", "tensor", "xu"))
SM = "sm_throughput_pct"  # the use of the busiest unit of an SM, whichever that is
ISSUE = "issue_active_pct"
_COMPUTE = (SM, *PIPES, ISSUE)
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
    *("l1_bytes", "l2_bytes", "grid_blocks", "dram_bytes", *WAVEFRONTS),
)
# Bytes per clock and SM of L1, which shared memory is a part of: 32 banks of 4 bytes (CUDA C++ Best Practices Guide,
# section "Shared Memory").
_L1_BYTES = 128
_MOST_OF_L1 = 0.5
GLOBAL_ATOMICS = "global_atomics"  # key of the number of such instructions in a kernel's machine code
_BOUND_PCT, _NEAR_PCT = 90.0, 60.0
_DRAM_BOUND_PCT = 80.0
# All traffic of device memory passes through L2 and often uses it a little more: within this many percentage points,
# device memory is the ceiling.
_DRAM_BEHIND_L2 = 10.0
# Two ceilings as close as this are both named. A pipe is named beside issue slots from further away, since its
# instructions fill them.
_SECOND, _PIPE_BEHIND_ISSUE = 5.0, 10.0
_CLOSE = 2.0  # by which a part is taken for the busiest one of its whole
_FILLED = 0.8
# A kernel with global atomics that uses less than this of every ceiling, with enough warps that wait for memory, waits
# for its atomics: L2 performs those on one address one after another.
_IDLE_PCT, _OCCUPIED_PCT = 25.0, 50.0
_MEMORY_STALLS = ("long_scoreboard", "drain", "lg_throttle", "membar")
_QUEUES = ("lg_throttle", "mio_throttle", "tex_throttle")  # stalls that show that a queue is full


def bound(
    variant: str,
    values: Mapping[str, float],
    sms: float,
    measured: Mapping[str, float] = MappingProxyType({}),
) -> Bound:
    """Returns what bounds a kernel with the counters `values`; missing counters are NaN or absent.

    `values` may hold GLOBAL_ATOMICS; `measured` are the ceilings of this GPU that are known, in GB/s. What the counters
    do not tell is left empty.
    """
    used_pct = ceilings(values, sms)
    reached = {metric: pct for metric, pct in _reached(values, measured) if pct > used_pct.get(metric, 0.0)}
    used_pct |= reached
    named = {metric: CEILINGS[metric] for metric in reached}
    counted = Bound(
        family="",
        variant=variant,
        case="",
        kernel="",
        dram_bytes=values.get("dram_bytes", math.nan),
        conflicts_pct=_conflicts_pct(values),
    )
    if not used_pct:
        return replace(counted, gap="no_throughput")
    first, second = _closest(used_pct)
    stall = dominant_stall(values) or ""
    beside = _beside(first, used_pct)
    is_partial = values.get("waves_per_sm", math.nan) < 1
    return replace(
        counted,
        kind=_kind(first, used_pct, values, sms, stall, _BOUND_PCT if first in named else _enough_pct(first)),
        ceiling=named.get(first, first),
        ceiling_pct=used_pct[first],
        ceiling_2=named.get(second, second),
        ceiling_2_pct=used_pct.get(second, math.nan),
        beside=named.get(beside, beside),
        beside_pct=used_pct.get(beside, math.nan),
        l1_bytes_pct=_l1_bytes_pct(values, sms) if first == L1 else math.nan,
        shared_wavefronts=_shared(values, sms, used_pct[first]) if first == L1 else math.nan,
        stall=stall,
        stall_pct=values.get(f"stall_{stall}_pct", math.nan),
        theoretical_pct=values.get("theoretical_occupancy_pct", math.nan),
        achieved_pct=values.get("achieved_occupancy_pct", math.nan),
        limiters=",".join(occupancy_limiter(values)),
        blocks=int(values.get("grid_blocks", -1)) if is_partial else -1,
        waves=values["waves_per_sm"] if is_partial else math.nan,
        sms=-1 if math.isnan(sms) else int(sms),
    )


def _reached(values: Mapping[str, float], measured: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Yields how much of the measured ceilings a kernel uses, by the metric of the unit, in percent."""
    for metric, (moved, ceiling) in RATES.items():
        rate = values.get(moved, math.nan) / (1e3 * values.get("duration_us", math.nan))
        if measured.get(ceiling, math.nan) > 0:
            yield metric, 100 * rate / measured[ceiling]


def _enough_pct(ceiling: str) -> float:
    """Returns the share of a ceiling's peak from which on it is the bound."""
    return _DRAM_BOUND_PCT if ceiling == DRAM else _BOUND_PCT


def _conflicts_pct(values: Mapping[str, float]) -> float:
    ideal, conflicts = shared_wavefronts(values)
    return 100 * conflicts / (ideal + conflicts) if ideal + conflicts > 0 else math.nan


def _beside(first: str, used_pct: Mapping[str, float]) -> str:
    """Returns L2 beside device memory, if it is used more, or device memory beside L2; otherwise ""."""
    if first == L2:
        return DRAM if DRAM in used_pct else ""
    return L2 if first == DRAM and used_pct.get(L2, 0.0) > used_pct[DRAM] else ""


def _shared(values: Mapping[str, float], sms: float, used_pct: float) -> float:
    """Returns the shared-memory wavefronts, if these are most of what L1/TEX, used by so much, does."""
    shared = sum(shared_wavefronts(values))
    cycles = sms * values.get("gpu_cycles", math.nan)
    return shared if 100 * shared >= _MOST_OF_L1 * used_pct * cycles else math.nan


def ceilings(values: Mapping[str, float], sms: float) -> dict[str, float]:
    """Returns how much of each ceiling is used, by counter, in percent of elapsed cycles; without those unknown."""
    used_pct = {name: values.get(name, math.nan) for name in (_MEMORY_SPEED, *_MEMORY, *_COMPUTE)}
    busy = busy_share(values, sms)
    if busy < 1:  # these two refer to the cycles in which an SM is active, all others to elapsed cycles
        used_pct[L1] *= busy
        used_pct[ISSUE] *= busy
    return {name: value for name, value in used_pct.items() if not math.isnan(value)}


def busiest(used_pct: Mapping[str, float]) -> str:
    """Returns the counter of the closest ceiling of `ceilings`; "" if none is known."""
    return _closest(used_pct)[0] if used_pct else ""


def blocks_per_sm(values: Mapping[str, float]) -> float:
    """Returns the number of blocks that fit on an SM; NaN if a limit is unknown."""
    limits = [values.get(name, math.nan) for name in _LIMITS[:4]]
    return math.nan if any(map(math.isnan, limits)) else min(limits)


def _l1_bytes_pct(values: Mapping[str, float], sms: float) -> float:
    peak = _L1_BYTES * sms * values.get("gpu_cycles", math.nan)
    return 100 * values.get("l1_bytes", math.nan) / peak if peak > 0 else math.nan


def _closest(used_pct: Mapping[str, float]) -> tuple[str, str]:
    """Returns the ceiling that is used most, and another one that is as close or explains it; "" for none.

    It is device memory if L2 is used most and device memory is close behind it. The unit of an SM without a name, and
    the whole memory system of a report, stand for their parts where one of these is as close.
    """
    kept = dict(used_pct)
    for whole, parts in ((SM, (*PIPES, ISSUE)), (_MEMORY_SPEED, _MEMORY)):
        if whole in kept and any(kept.get(part, 0.0) >= kept[whole] - _CLOSE for part in parts):
            del kept[whole]
    first = max(kept, key=kept.__getitem__)
    if first == L2 and kept.get(DRAM, -math.inf) >= kept[L2] - _DRAM_BEHIND_L2:
        first = DRAM
    near = {
        name: used
        for name, used in kept.items()
        if name not in (first, L2 if first == DRAM else "")
        and used >= kept[first] - (_PIPE_BEHIND_ISSUE if first == ISSUE and name in PIPES else _SECOND)
    }
    return first, max(near, key=near.__getitem__, default="")


def _kind(
    first: str,
    used_pct: Mapping[str, float],
    values: Mapping[str, float],
    sms: float,
    stall: str,
    enough_pct: float,
) -> str:
    if used_pct[first] >= enough_pct:
        return "compute" if first in _COMPUTE else "memory"
    if used_pct[first] >= _NEAR_PCT:
        return "near"
    if values.get("waves_per_sm", math.nan) < 1:
        return "launch"
    if _contended(used_pct, values, stall):
        return "atomics"
    if busy_share(values, sms) < _FILLED:
        return "launch"
    return "queue" if stall in _QUEUES else "latency"


def _contended(used_pct: Mapping[str, float], values: Mapping[str, float], stall: str) -> bool:
    return (
        values.get(GLOBAL_ATOMICS, 0.0) > 0
        and max(used_pct.values()) < _IDLE_PCT
        and values.get("achieved_occupancy_pct", 0.0) >= _OCCUPIED_PCT
        and stall in _MEMORY_STALLS
    )
