"""Names the mechanism behind a predicted change: which count of the unit that changed made it change.

What a unit does is a sum of counts (wavefronts of accesses and of their conflicts) or a product of factors (loads, over
those in flight, times a latency). The unit's part of the gain goes to those counts or factors that changed in its
direction, in proportion to their changes, or their logarithms. A mechanism has what all units give it.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from warplog.analysis.mechanisms import units
from warplog.analysis.mechanisms.ceilings import Gpu
from warplog.analysis.mechanisms.model import LAUNCHES, Prediction
from warplog.analysis.mechanisms.work import LINE_SECTORS, SECTOR, Launch, Work
from warplog.catalog.contract import Mechanism

# How much each mechanism accounts for a change, in any unit: positive if it saves.
Parts = dict[Mechanism, float]
OF_MEMORY: tuple[Mechanism, ...] = ("l2_bytes", "dram_bytes", "multicast", "coalescing")
_FROM_NOTHING = 10.0
LEAST_MOVED = math.log(1.05)  # of a count that is to show a mechanism
_MATRIX = 0.02  # least cycles of the tensor pipe per instruction of a kernel that multiplies matrices there
# The metrics that a mechanism rests on, and columns of other tables, as table/column.
RESTS_ON: Mapping[Mechanism, tuple[str, ...]] = {
    "coalescing": (
        "global_load_sectors_per_request",
        "global_store_sectors_per_request",
        "l2_requests_from_sms",
    ),
    "wide_accesses": ("inst_ldg", "inst_stg", "instructions/text"),
    "loads_in_flight": ("inst_ldg", "instructions/text"),
    "occupancy": ("occupancy_limit_registers_blocks", "occupancy_limit_shared_memory_blocks", "grid_blocks"),
    "memory_level": ("inst_ldg", "inst_lds", "global_reduction_requests", "dram_bytes_read", "l1_hit_pct"),
    "dram_bytes": ("dram_bytes_read", "dram_bytes_written"),
    "l2_bytes": ("l2_bytes",),
    "multicast": ("l2_bytes", "instructions/text"),
    "shared_accesses": ("l1_wavefronts", "l1_shared_wavefronts"),
    "bank_conflicts": ("shared_wavefronts_excess",),
    "spills": ("inst_ldl", "inst_stl"),
    "instructions": ("instructions_executed",),
    "load_overlap": ("inst_ldgdepbar", "instructions/text"),
    "independent_instructions": ("instructions/text",),
    "faster_unit": ("pipe_tensor_pct",),
    "barriers": ("inst_bar", "inst_syncs"),
    "fences": ("inst_membar",),
    "atomics": ("global_reduction_requests", "global_atomic_requests", "traced_kernels/same_address"),
    "block_starts": ("grid_blocks",),
    "idle_sms": ("grid_blocks",),
    "tail": ("grid_blocks",),
    "launches": ("metrics/launch",),
}


def by_mechanism(parent: Launch, child: Launch, prediction: Prediction, gpu: Gpu) -> Parts:
    """Returns what of the predicted saving is due to each mechanism, in microseconds; the largest first.

    Kernels of a launch have no counterparts in the other: the counts of the longest one are compared. What no count
    shows is due to none.
    """
    before, after = (longest(launch, gpu) for launch in (parent, child))
    found: Parts = {}
    for unit, us in prediction.shares.items():
        parts: Parts = {"launches": us} if unit == LAUNCHES else _parts(unit, before, after, gpu)
        agreeing = {mechanism: part for mechanism, part in parts.items() if part * us > 0}
        whole = sum(agreeing.values())
        for mechanism, part in agreeing.items():
            shown: Mechanism = mechanism if rests_on(mechanism, parent, child, us, gpu) else "none"
            found[shown] = found.get(shown, 0.0) + us * part / whole
    return dict(sorted(found.items(), key=lambda item: -abs(item[1])))


def named(parts: Parts, saved_us: float) -> Mechanism:
    """Returns the mechanism with most of a saving, or of a loss; "none" if no count supports it."""
    supported = {mechanism: us for mechanism, us in parts.items() if us * saved_us > 0}
    return max(supported, key=lambda mechanism: abs(supported[mechanism]), default="none")


def rests_on(
    mechanism: Mechanism, parent: Launch, child: Launch, saved_us: float, gpu: Gpu
) -> tuple[str, ...]:
    """Returns what a mechanism rests on: of the metrics whose direction is known, those that moved in it.

    These are counted over all kernels, since work may move from one to another.
    """
    before, after = _summed(parent, gpu), _summed(child, gpu)
    moved = {name: _log(getattr(before, count), getattr(after, count)) for name, count in _FEWER.items()}
    if mechanism in _MOVED:
        moved |= _MOVED[mechanism](before, after)
    forth = math.copysign(1.0, saved_us)
    named = RESTS_ON.get(mechanism, ())
    return tuple(name for name in named if name not in moved or forth * moved[name] >= LEAST_MOVED)


def longest(launch: Launch, gpu: Gpu) -> Work:
    """Returns the kernel of a launch whose busiest unit works longest."""
    return max(launch, key=lambda work: max(units.unit_times(work, gpu).values(), default=0.0))


def multiplies(work: Work) -> bool:
    """Whether tensor cores compute: other kernels keep their pipe busy, too, for some cycles in a thousand."""
    return work.pipe_cycles.get("tensor", 0.0) * work.sms > _MATRIX * work.instructions


def _parts(unit: str, before: Work, after: Work, gpu: Gpu) -> Parts:
    """Returns what changes the time of a unit, each part positive if it saves; comparable with each other."""
    if unit in units.OF_SM:
        counts = _counts(unit, before, after)
        whole = sum(map(abs, counts.values()))
        work = abs(_log(_busy(unit, before), _busy(unit, after)))
        return _added(
            {m: work * change / whole for m, change in counts.items() if whole}, _uneven(before, after)
        )
    if unit in (units.CHAIN, units.WAITS):
        return _chain(unit, before, after, gpu)
    if unit == "l2":
        return _l2(before, after, gpu)
    return _OF_GPU[unit](before, after)


def _counts(unit: str, before: Work, after: Work) -> Parts:
    """Returns the changes of the counts that a unit of an SM works on, in instructions or in wavefronts."""
    if unit == "l1":
        return _wavefronts(before, after)
    if unit in ("issue", "lsu"):
        return _instructions(before, after, unit == "issue")
    is_other = multiplies(before) != multiplies(after)
    return {"faster_unit" if is_other else "instructions": _busy(unit, before) - _busy(unit, after)}


def _wavefronts(before: Work, after: Work) -> Parts:
    shared = _shared_ideal(before) - _shared_ideal(after)
    spills = (before.spilled_sectors - after.spilled_sectors) / LINE_SECTORS
    elsewhere = _global_wavefronts(before) - _global_wavefronts(after) - spills
    apart = _within(before.excess_sectors - after.excess_sectors, elsewhere)
    parts: Parts = {
        "bank_conflicts": before.conflicts - after.conflicts,
        "spills": spills,
        "coalescing": apart,
    }
    return _added(
        _added(parts, {"shared_accesses": shared}), {_other_memory(before, after): elsewhere - apart}
    )


def _instructions(before: Work, after: Work, with_others: bool) -> Parts:
    """Returns the changes of accesses to memory, and with others of those as well.

    Wider accesses spare the instructions that go with each of them.
    """
    spills, shared = before.spills - after.spills, before.shared_accesses - after.shared_accesses
    few, many = sorted(_accesses(work) for work in (before, after))
    accesses = _accesses(before) - _accesses(after)
    wide = _share(_wider(before, after), _log(_accesses(before), _accesses(after)))
    own = before.instructions - after.instructions - spills - shared - accesses if with_others else 0.0
    most = max(before.instructions, after.instructions) - many
    beside = wide * _within(math.copysign(most * (1 - few / many), accesses), own) if many else 0.0
    words = _share(
        _log(_shared_ideal(before), _shared_ideal(after)), _log(before.shared_accesses, after.shared_accesses)
    )
    parts: Parts = {"spills": spills, "shared_accesses": words * shared, "instructions": own - beside}
    wider: Parts = {"wide_accesses": wide * accesses + beside + (1 - words) * shared}
    return _added(_added(parts, wider), {_other_memory(before, after, "instructions"): (1 - wide) * accesses})


def _other_memory(before: Work, after: Work, otherwise: Mechanism = "shared_accesses") -> Mechanism:
    """Returns why accesses to global memory are others: those to shared memory take their place, or something else.

    These are of a nearer level only if fewer bytes come from afar than before: L1 may have answered already.
    """
    fewer = _accesses(before) - _accesses(after)
    if fewer * (before.shared_accesses - after.shared_accesses) >= 0:
        return otherwise
    forth = math.copysign(1.0, fewer)
    is_nearer = any(forth * moved >= LEAST_MOVED for moved in _from_afar(before, after))
    return "memory_level" if is_nearer else "shared_accesses"


def _from_afar(before: Work, after: Work) -> Iterator[float]:
    """Yields how far the bytes of L2 and of device memory, and the sectors that L1 lacks, are fewer than before."""
    yield _log(before.l2_bytes, after.l2_bytes)
    yield _log(before.dram_read + before.dram_written, after.dram_read + after.dram_written)
    yield _log(before.load_sectors * (1 - before.l1_hit), after.load_sectors * (1 - after.l1_hit))


def _chain(unit: str, before: Work, after: Work, gpu: Gpu) -> Parts:
    sides = [units.chain(work, gpu) for work in (before, after)]
    beside = _added({"occupancy": _log(_held(after), _held(before))}, _uneven(before, after))
    loads: Parts = {
        **_wide_or(
            _other_memory(before, after, "instructions"), before, after, _log(before.loads, after.loads)
        ),
        "loads_in_flight": _log(after.in_flight, before.in_flight),
    }
    loads = _added(loads, {"memory_level": _log(units.latency(before, gpu), units.latency(after, gpu))})
    arithmetic: Parts = {"independent_instructions": _log(before.dependent, after.dependent)}
    factors: Mapping[str, Parts] = {
        "block": {
            **_fewer_blocks(before, after),
            "occupancy": _log(after.resident, before.resident),
        },
        "arithmetic": _added(arithmetic, beside),
        "loads": _added(loads, beside),
        "copies": {"load_overlap": _log(1 - before.overlapped, 1 - after.overlapped)},
        "barriers": _added({"barriers": _log(before.barriers, after.barriers)}, beside),
        "fences": _added({"fences": _log(before.fences, after.fences)}, beside),
        "arrivals": _added({"barriers": _log(before.arrivals, after.arrivals)}, beside),
    }
    found: Parts = {}
    for name, parts in factors.items():
        if (name in units.WAITED_FOR) != (unit == units.WAITS):
            continue
        change = sides[0].get(name, 0.0) - sides[1].get(name, 0.0)
        agreeing = {mechanism: part for mechanism, part in parts.items() if part * change > 0}
        scale = abs(change) / sum(map(abs, agreeing.values())) if agreeing else 0.0
        found = _added(found, {mechanism: scale * part for mechanism, part in agreeing.items()})
    return found


def _fewer_blocks(before: Work, after: Work) -> Parts:
    """Returns why there are fewer blocks: of more warps each, or since a lane takes more at a time."""
    larger: Parts = {"block_starts": _log(after.block_warps, before.block_warps)}
    return _added(larger, _wide_or("block_starts", before, after, _log(before.warps, after.warps)))


def _wide_or(other: Mechanism, before: Work, after: Work, fewer: float) -> Parts:
    """Divides a decrease, as a logarithm, between wider accesses and another mechanism."""
    wide = _within(_wider(before, after), fewer)
    return {"wide_accesses": wide, other: fewer - wide}


def _l2(before: Work, after: Work, gpu: Gpu) -> Parts:
    """Returns what changes the time of L2 for bytes, and of ports to SMs beyond: for requests that carry less."""
    less = _log(*(units.l2_us(replace(work, blocks=work.sms), gpu) for work in (before, after)))
    sectors = before.l2_sectors - after.l2_sectors
    spilled = less * _share(before.spilled_sectors - after.spilled_sectors, sectors)
    added = (less - spilled) * _share(before.atomic_sectors - after.atomic_sectors, sectors)
    nearer = (before.atomics - after.atomics) * (before.shared_accesses - after.shared_accesses) < 0
    fenced = (less - spilled - added) * _share(_fenced(before, after), sectors)
    left = less - spilled - added - fenced
    fewer = _within(_log(before.l2_bytes, after.l2_bytes), left)
    moved: Mechanism = "multicast" if (after.multicasts - before.multicasts) * fewer > 0 else "l2_bytes"
    parts: Parts = {"spills": spilled, "memory_level" if nearer else "atomics": added, "fences": fenced}
    parts = _added(parts, _apart_or(moved, before, after, fewer))
    emptier = _log(before.l2_requests, after.l2_requests) - _log(before.l2_sectors, after.l2_sectors)
    parts = _added(parts, _fuller(before, after, _within(emptier, left - fewer)))
    return _added(parts, _uneven(before, after))  # of the port of the busiest SM


def _fuller(before: Work, after: Work, fewer: float) -> Parts:
    """Divides a decrease of requests for the same bytes: accesses are wider, or else their lanes lie less apart.

    Those to global memory count as far as the sectors that L2 sends are for them, and not for copies.
    """
    of_accesses = min(
        _share(work.load_sectors + work.store_sectors, work.l2_sectors) for work in (before, after)
    )
    wide = _within(of_accesses * _wider(before, after), fewer)
    return {"wide_accesses": wide, "coalescing": fewer - wide}


def _fenced(before: Work, after: Work) -> float:
    """Returns how many more sectors hit L1 because of fewer fences.

    A fence empties L1, so that later loads miss, and sends each write on before it can be merged with the next.
    """
    sectors = min(work.load_sectors + work.store_sectors for work in (before, after))
    hits = (after.l1_hit - before.l1_hit) * sectors
    return hits if (before.fences - after.fences) * hits > 0 else 0.0


def _dram(before: Work, after: Work) -> Parts:
    sides = [work.dram_read + work.dram_written for work in (before, after)]
    fewer = _log(*sides)
    spilled = fewer * _share(SECTOR * (before.spilled_sectors - after.spilled_sectors), sides[0] - sides[1])
    return _added({"spills": spilled}, _apart_or("dram_bytes", before, after, fewer - spilled))


def _apart_or(other: Mechanism, before: Work, after: Work, fewer: float) -> Parts:
    """Divides a decrease of bytes, as a logarithm, between lanes that lie less apart and another mechanism."""
    apart = _within(_log(_apart(before)[-1], _apart(after)[-1]), fewer)
    return {"coalescing": apart, other: fewer - apart}


_OF_GPU: Mapping[str, Callable[[Work, Work], Parts]] = {
    "dram": _dram,
    units.COUNTING: lambda before, after: {"barriers": _log(before.barriers, after.barriers)},
    units.BLOCKS: lambda before, after: _fewer_blocks(before, after),
    units.WARPS: lambda before, after: {"block_starts": before.warps - after.warps},
    units.ATOMICS: lambda before, after: {"atomics": _log(_additions(before), _additions(after))},
}


def _summed(launch: Launch, gpu: Gpu) -> Work:
    """Returns the longest kernel of a launch, with the counts of all."""
    return replace(
        longest(launch, gpu), **{name: sum(getattr(work, name) for work in launch) for name in _SUMMED}
    )


def _nearer(before: Work, after: Work) -> Mapping[str, float]:
    """Returns how far each metric tells of a nearer level: shared memory answers in the place of loads, or L1 does."""
    shared = _log(after.shared_accesses, before.shared_accesses)
    loads = _within(_log(before.loads, after.loads), shared)
    return {
        "inst_ldg": loads,
        "inst_lds": loads,
        "global_reduction_requests": _within(_log(before.atomics, after.atomics), shared),
        "dram_bytes_read": _log(before.dram_read, after.dram_read),
        "l1_hit_pct": _log(1 - before.l1_hit, 1 - after.l1_hit),
    }


def _coalesced(before: Work, after: Work) -> Mapping[str, float]:
    loads, stores, _ = (_log(*sides) for sides in zip(_apart(before), _apart(after), strict=True))
    return {"global_load_sectors_per_request": loads, "global_store_sectors_per_request": stores}


def _bytes(before: Work, after: Work) -> Mapping[str, float]:
    moved = _log(before.dram_read + before.dram_written, after.dram_read + after.dram_written)
    return dict.fromkeys(RESTS_ON["dram_bytes"], moved)


# Of mechanisms, how far each metric moved the way that saves time, as a logarithm.
_MOVED: Mapping[Mechanism, Callable[[Work, Work], Mapping[str, float]]] = {
    "memory_level": _nearer,
    "coalescing": _coalesced,
    "dram_bytes": _bytes,
}
# Metrics that save time if they are fewer, and the counts of work that these are.
_FEWER: Mapping[str, str] = {
    "l2_bytes": "l2_bytes",
    "l2_requests_from_sms": "l2_requests",
    "instructions_executed": "instructions",
    "l1_wavefronts": "l1_wavefronts",
    "l1_shared_wavefronts": "shared_wavefronts",
    "shared_wavefronts_excess": "conflicts",
    "inst_ldl": "spills",
    "inst_stl": "spills",
    "inst_bar": "barriers",
    "inst_syncs": "arrivals",
    "inst_membar": "fences",
}
_SUMMED = (
    "loads",
    "load_sectors",
    "stores",
    "store_sectors",
    "atomics",
    "shared_accesses",
    "dram_read",
    "dram_written",
    *dict.fromkeys(_FEWER.values()),
)


def _additions(work: Work) -> float:
    """Returns the atomics of a kernel, where one in floating point counts for more."""
    return work.same_address * (1 + work.adds_floats)


def _busy(unit: str, work: Work) -> float:
    if unit == "l1":
        return work.l1_wavefronts
    return work.instructions if unit == "issue" else work.pipe_cycles.get(unit, 0.0)


def _shared_ideal(work: Work) -> float:
    return work.shared_wavefronts - work.conflicts


def _accesses(work: Work) -> float:
    return work.loads + work.stores


def _wider(before: Work, after: Work) -> float:
    """Returns the logarithm of how many times wider the accesses to global memory are."""
    widths = [
        sum(n * width for n, width in zip((work.loads, work.stores), work.widths, strict=True))
        / _accesses(work)
        if _accesses(work)
        else 0.0
        for work in (before, after)
    ]
    return math.log(widths[1] / widths[0]) if min(widths) > 0 else 0.0


def _global_wavefronts(work: Work) -> float:
    """Returns the wavefronts of accesses to global and local memory."""
    return work.l1_wavefronts - work.shared_wavefronts


def _apart(work: Work) -> tuple[float, ...]:
    """Returns the sectors of loads, of stores, and of both, over those that hold what these ask for; at least 1."""
    kinds = zip((work.load_sectors, work.store_sectors), work.asked_sectors, strict=True)
    both = (work.load_sectors + work.store_sectors, sum(work.asked_sectors))
    return tuple(sectors / asked if sectors else 1.0 for sectors, asked in (*kinds, both))


def _held(work: Work) -> float:
    """Returns the warps that an SM holds at a time."""
    return work.block_warps * work.resident


def _uneven(before: Work, after: Work) -> Parts:
    """Returns how much less the busiest SM has to do than the mean one."""
    idle = min(before.blocks, after.blocks) < before.sms
    return {"idle_sms" if idle else "tail": _log(before.unevenness, after.unevenness)}


def _within(part: float, whole: float) -> float:
    """Returns a part of a change, which is at most all of it and none against it."""
    return math.copysign(min(abs(part), abs(whole)), whole) if part * whole > 0 else 0.0


def _share(part: float, whole: float) -> float:
    return _within(part, whole) / whole if whole else 0.0


def _log(before: float, after: float) -> float:
    """Returns the logarithm of a ratio; that of a change from or to nothing outweighs any other."""
    if before > 0 and after > 0:
        return math.log(before / after)
    return _FROM_NOTHING * ((before > 0) - (after > 0))


def _added(some: Parts, others: Parts) -> Parts:
    return {m: some.get(m, 0.0) + others.get(m, 0.0) for m in dict.fromkeys((*some, *others))}
