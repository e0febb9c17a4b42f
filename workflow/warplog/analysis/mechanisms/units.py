"""How long each unit of the GPU works for a kernel, in microseconds, if it does nothing else.

SMs work through their blocks beside each other, so that the busiest one decides. Device memory, L2, the start of
blocks, and atomics on one address are one unit each for the whole GPU. A chain is what a warp cannot overlap: the
life of its block, and the results, loads, barriers and fences that it waits for, times the blocks that follow each
other on an SM. Of it, the waits for loads are a unit of their own: those of a busy memory come later.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from warplog.analysis.mechanisms.ceilings import Gpu
from warplog.analysis.mechanisms.work import Launch, Work

CHAIN, WAITS, ATOMICS, BLOCKS, WARPS = "chain", "waits", "atomics", "blocks", "warps"
COUNTING = (
    "barrier_unit"  # of an SM, which counts the warps at the barriers of all its blocks one after the other
)
WAITED_FOR = ("loads", "copies")  # parts of the chain that are waits
OF_SM = ("issue", "fma", "alu", "fp64", "xu", "lsu", "tensor", "l1")
OF_GPU = ("l2", "dram")
_STARTS = (BLOCKS, WARPS)
SCHEDULERS = 4  # of an SM, each of which issues an instruction per cycle
_WAVEFRONT, _LINE, _SECTOR = 128, 128, 32  # bytes
_PORT = 64  # bytes per cycle between an SM and L2
_FEW_WARPS, _MANY_WARPS = 4, 32  # of the two barriers that are measured
_OF_PHASE = 2  # instructions of a warp on an mbarrier: it arrives, and asks whether all have

Times = dict[str, float]
# How much of what each ceiling is about a kernel does. Others than these have a substitute: a unit's peak, or another
# level of memory.
_RESTS_ON: Mapping[str, Callable[[Work], float]] = {
    "launch_us": lambda _: 1.0,
    "block_life_ns": lambda _: 1.0,
    "block_starts_per_us": lambda work: work.blocks,
    "warp_starts_per_us": lambda work: work.warps,
    "l2_gbytes_per_s": lambda work: work.l2_requests,
    "dram_gbytes_per_s": lambda work: work.dram_read + work.dram_written,
    "dram_latency_ns": lambda work: work.rounds + work.copies,
    "fma_latency_ns": lambda work: work.dependent,
    "barrier_ns": lambda work: work.barriers,
    "mbarrier_ns": lambda work: work.arrivals,
    "fence_ns": lambda work: work.fences,
    "same_address_add_ns": lambda work: 0.0 if work.adds_floats else work.same_address,
    "same_address_float_add_ns": lambda work: work.same_address if work.adds_floats else 0.0,
}


def missing(launch: Launch, gpu: Gpu) -> tuple[str, ...]:
    """Returns the ceilings that the work of a launch rests on, and that are not known."""
    unknown = (name for name in _RESTS_ON if math.isnan(gpu.value(name)))
    return tuple(name for name in unknown if any(_RESTS_ON[name](work) > 0 for work in launch))


def unit_times(work: Work, gpu: Gpu) -> Times:
    """Returns the time of each unit that works for a kernel, and whose ceiling is known."""
    parts = chain(work, gpu)
    waits = sum(us for name, us in parts.items() if name in WAITED_FOR)
    times = dict(_of_sm(work, gpu)) | dict(_of_gpu(work, gpu))
    times |= {CHAIN: sum(parts.values()) - waits, WAITS: waits}
    return {unit: us for unit, us in times.items() if us > 0}


def chain(work: Work, gpu: Gpu) -> Times:
    """Returns the parts of the chain, those that are known: block, arithmetic, loads, barriers, ..."""
    parts = {
        "block": gpu.us("block_life_ns"),
        "arithmetic": work.dependent / work.warps * gpu.us("fma_latency_ns"),
        "loads": work.rounds * latency(work, gpu),
        "copies": work.copies / work.warps * (1 - work.overlapped) * gpu.us("dram_latency_ns"),
        "barriers": work.barriers / work.warps * _barrier(work.block_warps, gpu),
        "fences": work.fences / work.warps * gpu.us("fence_ns"),
        "arrivals": work.arrivals / work.warps / _OF_PHASE * gpu.us("mbarrier_ns"),
    }
    return {name: work.lives * us for name, us in parts.items() if us > 0}


def latency(work: Work, gpu: Gpu) -> float:
    """Returns how long a load takes on average, by the level that answers; that of device memory if others are unknown.

    What comes from device memory is known in bytes, and of the rest the share that L1 answers. A load waits for the
    slowest of its sectors, so that those beyond the bytes that it asks for make none faster.
    """
    dram, l2, l1 = (gpu.us(f"{level}_latency_ns") for level in ("dram", "l2", "l1"))
    if math.isnan(l1 + l2) or not work.load_sectors:
        return dram
    asked, _ = work.asked_sectors
    missed = min(1.0, work.dram_read / (_SECTOR * asked))
    return missed * dram + (1 - missed) * (work.l1_hit * l1 + (1 - work.l1_hit) * l2)


def bound(launch: Launch, gpu: Gpu, power: float) -> float:
    """Returns the modelled time of a launch without starting it: kernels follow each other, units of one overlap."""
    return sum(norm(unit_times(work, gpu), power) for work in launch)


def norm(times: Times, power: float) -> float:
    """Returns the time of units that overlap in part: the longest for a large power, their sum for 1.

    Waits for loads come on top: what is transferred meanwhile makes them longer. While blocks start more slowly than
    they end, SMs hold fewer of them, whose waits others hide.
    """
    held = _held(times, power)
    return _norm((held, *(times.get(unit, 0.0) for unit in _STARTS)), power)


def follows(times: Times, power: float) -> Times:
    """Returns how much longer the norm is for each microsecond more of a unit."""
    held, whole, beside = _held(times, power), norm(times, power), _beside(times)
    working = held - times.get(WAITS, 0.0)

    def share(us: float, of: float) -> float:
        return float((us / of) ** (power - 1)) if of else 0.0

    def of_held(unit: str) -> float:
        return 1.0 if unit == WAITS else share(beside.get(unit, 0.0), working)

    return {
        unit: share(us, whole) if unit in _STARTS else share(held, whole) * of_held(unit)
        for unit, us in times.items()
    }


def _held(times: Times, power: float) -> float:
    """Returns the time of blocks that have started."""
    return _norm(_beside(times).values(), power) + times.get(WAITS, 0.0)


def _beside(times: Times) -> Times:
    """Returns the units that work beside each other for them.

    An access passes through the LSU pipe and then through L1, while others follow it: the slower one decides.
    """
    faster = min("lsu", "l1", key=lambda unit: times.get(unit, 0.0))
    return {unit: us for unit, us in times.items() if unit not in (WAITS, *_STARTS, faster)}


def _norm(times: Iterable[float], power: float) -> float:
    return float(sum(us**power for us in times) ** (1 / power))


def _of_sm(work: Work, gpu: Gpu) -> Iterator[tuple[str, float]]:
    cycle_us = work.unevenness / work.mhz  # of the busiest SM
    yield "issue", work.instructions / (SCHEDULERS * work.sms) * cycle_us / gpu.share("issue_pct")
    for pipe, cycles in work.pipe_cycles.items():
        yield pipe, cycles * cycle_us / gpu.share(f"{pipe}_pct")
    yield COUNTING, work.barriers / work.sms * _counted(gpu) * work.unevenness
    measured = gpu.per_us("l1_gbytes_per_s") / _WAVEFRONT
    a_cycle = work.sms * work.mhz  # one wavefront per cycle and SM, which kernels reach almost
    yield "l1", work.l1_wavefronts / (a_cycle if math.isnan(measured) else measured) * work.unevenness


def _of_gpu(work: Work, gpu: Gpu) -> Iterator[tuple[str, float]]:
    yield "l2", l2_us(work, gpu)
    yield "dram", dram_us(work.dram_read, work.dram_written, gpu)
    yield BLOCKS, work.blocks / gpu.per_us("block_starts_per_us")
    yield WARPS, work.warps / gpu.per_us("warp_starts_per_us")
    added = "same_address_float_add_ns" if work.adds_floats else "same_address_add_ns"
    yield ATOMICS, work.same_address * gpu.us(added)


def l2_us(work: Work, gpu: Gpu) -> float:
    """Returns the time of L2 for the sectors that it sends and receives, or of its busiest port to an SM, if longer.

    A load holds the port as long as a whole line does, whatever it asks for; a store holds it twice, with its address
    and its bytes. An answer that is multicast holds the port of each SM that receives it.
    """
    apart, shared = gpu.per_us("l2_apart_gbytes_per_s"), gpu.per_us("l2_gbytes_per_s")
    stores = min(1.0, work.store_sectors / work.l2_sectors) if work.l2_sectors else 0.0
    answers = work.l2_requests if math.isnan(work.received) else work.received
    port = answers * (1 + stores) * _LINE / _PORT / work.sms * work.unevenness / work.mhz
    return max(port, work.l2_sectors * _SECTOR / (shared if math.isnan(apart) else apart))


def dram_us(read: float, written: float, gpu: Gpu) -> float:
    """Returns the time of device memory for bytes, where a byte written takes longer, if a copy was measured."""
    to_read = 1 / gpu.per_us("dram_gbytes_per_s")
    copied = gpu.per_us("dram_copy_gbytes_per_s")
    to_write = to_read if math.isnan(copied) else 2 / copied - to_read
    return read * to_read + written * to_write


def _barrier(warps: float, gpu: Gpu) -> float:
    """Returns how long a barrier of so many warps takes, on the line through the two that were measured."""
    return max(0.0, gpu.us("barrier_ns") + (warps - _FEW_WARPS) * _counted(gpu))


def _counted(gpu: Gpu) -> float:
    """Returns how much longer a barrier takes for each warp; 0 if that was not measured."""
    few, many = gpu.us("barrier_ns"), gpu.us("barrier_32_warps_ns")
    return 0.0 if math.isnan(many) else (many - few) / (_MANY_WARPS - _FEW_WARPS)
