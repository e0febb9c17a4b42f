"""Sentences about the steps of a ladder and about what bounds a kernel, as far as the counters show."""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

from warplog.analysis.bounds import Bound
from warplog.analysis.decomposition import ISSUING, WAVES, Change, Factor, StateChange, Step
from warplog.analysis.explanation import TRAFFIC
from warplog.analysis.waits import Wait
from warplog.core.numbers import short_number
from warplog.core.text import listed
from warplog.tables.regimes import LongRun

NAMES = {
    "instructions_executed": "instructions",
    "ipc": "instructions per cycle",
    "sm_busy_pct": "SM activity",
    "sm_mhz": "mean SM clock",
    "shared_wavefronts_excess": "excess shared wavefronts",
    "shared_wavefronts": "shared wavefronts",
    "global_load_sectors_per_request": "sectors per global load",
    "global_store_sectors_per_request": "sectors per global store",
    "dram_bytes": "device-memory traffic",
    "dram_bytes_written": "device-memory writes",
    "l2_bytes": "L2 traffic",
    "l1_bytes": "L1 traffic",
    "waves_per_sm": "waves of blocks",
    "grid_blocks": "blocks in the grid",
}
UNITS = {
    "dram_throughput_pct": "device memory",
    "l2_throughput_pct": "L2",
    "l1_throughput_pct": "L1/TEX",
    "sm_throughput_pct": "a part of the SM that ncu does not name",
    **{f"pipe_{one.lower()}_pct": f"the {one} pipe" for one in ("FMA", "ALU", "LSU", "FP64", "tensor", "XU")},
    "issue_active_pct": "the SM's issue slots",
    "memory_throughput_pct": "the memory system",
}
_WAITS = {
    "wgmma": ("the tensor cores", "the wgmma wait"),
    "barrier_or_wgmma": ("a barrier or the tensor cores", ""),
    "tma": ("TMA loads", "the mbarrier wait"),
    "mbarrier": ("loads or other warps", "the mbarrier wait"),
    "mbarrier_or_memory": ("an mbarrier, or data from global or local memory", ""),
}
_MOVED_BY = {"l2_bytes": "L2", "dram_bytes": "device memory"}
# What a warp in a state waits for, based on "Warp Scheduler States" in the Nsight Compute Profiling Guide.
WAITS_FOR: Mapping[str, str] = {
    "barrier": "a barrier",
    "branch_resolving": "the target of a branch",
    "dispatch_stall": "the dispatcher to issue a ready instruction",
    "drain": "stores to drain",
    "gmma": "wgmma instructions",
    "imc_miss": "constants that missed the constant cache",
    "lg_throttle": "room in the queue of global and local accesses",
    "long_scoreboard": "data from global or local memory",
    "math_pipe_throttle": "a free arithmetic pipe",
    "membar": "a memory fence",
    "mio_throttle": "room in the queue of shared-memory and special instructions",
    "misc": "miscellaneous reasons",
    "no_instruction": "an instruction fetch",
    "not_selected": "the scheduler, although ready to issue",
    "short_scoreboard": "data from shared memory or a special function",
    "sleeping": "the end of a sleep",
    "tex_throttle": "room in the queue of texture accesses",
    "wait": "a fixed-latency dependency",
}
# Smallest part of the ratio (log scale) for a factor to be mentioned, and share of the parent's time for a state.
_LEAST_FACTOR, _LEAST_STATE, _MOST_STATES = 0.1, 0.02, 2
# A factor nearer to 1 is not mentioned, however small the ratio: the same kernel, profiled again, has 0.969 to 1.034.
_LEAST_CHANGE = 0.98
_NOISE = {"ipc": 0.96, "sm_busy_pct": 0.96}
_MOST_OF_IT = 0.5
_MOST_REASONS = 3
_SAME = 0.005
_LEAST_TIED, _MOST_OFFSETS = 0.05, 3  # share of the parent's time of the states of a tied step
_LEAST_GAP = 1.25
_LEAST_DEVIATION = 0.05  # of the cycles of the profiled launch from those of the timed ones
_NEAR_PEAK_PCT = 60.0
_LARGE = math.log(3)  # from this ratio on, parallelism is told first
_MS = 1e4  # microseconds from which times are told in milliseconds
_LEAST_END = 1e-4  # of the longer time, for the shorter one to be told


def sentence(step: Step) -> str:
    """Describes the step in a few sentences on one line."""
    return " ".join(sentences(step))


def sentences(step: Step) -> tuple[str, ...]:
    """Describes the speed-up of a step and the reasons for it."""
    if math.isnan(step.ratio) or step.same_kernel:
        return reasons(step)
    return (_head(step), *_beyond_parent(step), *reasons(step))


def reasons(step: Step) -> tuple[str, ...]:
    """Describes what accounts for a step: parallelism, units, factors, the clock and the warp states.

    Where it is tied, what offsets what; where the counters do not account for it, which difference does or why not.
    """
    if math.isnan(step.ratio):
        return (f"Not compared with {step.parent} because {gap_text(step)}.",)
    twin = _same_kernel(step)
    if step.gap:
        return (*twin, f"Not explained because {gap_text(step)}.")
    if step.same_kernel:
        return twin
    if step.tied:
        return (*twin, *_offset(step))
    if not step.explicable:
        remark = () if step.is_elsewhere else _remark(step)
        return (*twin, f"{_capital(_unexplained(step))}.", *_clock(step), *remark)
    # Last, since what comes before compares with the parent, and this with another variant.
    return (*_why(step), *_clock(step), *_states(step), *_remark(step), *twin)


def values_told(step: Step) -> frozenset[str]:
    """Returns the counters of the variant whose values `reasons` gives for a step that it explains.

    The warp states whose waits it gives are among them. What follows need not repeat either.
    """
    if math.isnan(step.ratio) or step.gap or not step.explicable:
        return frozenset()
    states = _told_states(step)
    changes = [*_told_units(step), _unit_that_explains(step), step.use.occupancy]
    changes += [change for state in states for change in state.evidence]
    waits = {one.name for one in states if one.after >= _LEAST_END * one.before}
    return _evidence_told(step) | {one.name for one in changes if one} | waits


def _evidence_told(step: Step) -> frozenset[str]:
    """Returns the counters that are told before the warp states: traffic, sectors, factors and what explains these."""
    factors = _told_factors(step)
    behind = (one for factor in factors for one in factor.evidence)
    changes = (*step.use.traffic, *_sectors(step), *(one.change for one in factors), *behind)
    return frozenset(one.name for one in changes)


def _told_factors(step: Step) -> list[Factor]:
    """Returns the factors to mention: none if all of them are against the step, unless schedulers are idle."""
    large = main_factors(step)
    return large if step.use.idle or any((one.factor > 1) == (step.ratio > 1) for one in large) else []


def _why(step: Step) -> list[str]:
    """Describes what brings the ratio: atomics, parallelism or a unit at the same traffic, otherwise the factors."""
    first, large = [*_contended(step), *_parallel(step), *_by_unit(step)], _told_factors(step)
    explains = any((one.factor > 1) == (step.ratio > 1) for one in large)
    told = []
    for word, helps in (("factors in its favour", True), ("factors against it", False)):
        factors = [_factor(one) for one in large if (one.factor > 1) == helps]
        told += [f"{word}: {listed(factors)}"] if factors else []
    ordered = (*first, *told, *_use(step)) if explains else (*first, *_use(step), *told)
    return [f"{_capital(one)}." for one in ordered]


def main_causes(step: Step) -> list[Change]:
    """Returns the changes that are told before factors: blocks of the grid, sectors per request, and a unit's use."""
    unit = _unit_that_explains(step)
    return [*_grid(step)[:1], *_sectors(step), *([unit] if unit else [])]


def main_factors(step: Step) -> list[Factor]:
    """Returns the factors to mention, the largest first: none where atomics or parallelism account for the ratio.

    Never the clock, which results from the others.
    """
    told = any(step.use.contended) or _grid(step) or _sectors(step)
    if (told and not _unit_that_explains(step)) or (main_causes(step) and step.use.idle):
        return []
    found = [one for one in step.causes if _weight(one, step) >= _LEAST_FACTOR]
    largest = {one.factor > 1: abs(math.log(one.factor)) for one in reversed(found)}
    return [
        one
        for one in step.causes
        if one in found or abs(math.log(one.factor)) > largest.get(one.factor > 1, math.inf)
    ]  # what is within noise too, if it is larger than what is told


def _contended(step: Step) -> list[str]:
    """Says that contended atomics bound one of the two kernels only."""
    before, after = step.use.contended
    if before == after:
        return []
    return ["contended global atomics bound it" if after else "contended global atomics no longer bound it"]


def _parallel(step: Step) -> list[str]:
    """Describes, for a large ratio, a grid that fills the GPU on one side only, and sectors per request."""
    grid = _grid(step)
    told = [f"{_moved(grid[0])} ({_span(grid[1])} waves)"] if grid else []
    sectors = [_moved(one) for one in _sectors(step)]
    return told + ([listed(sectors)] if sectors else [])


def _grid(step: Step) -> tuple[Change, ...]:
    """Returns blocks and waves of the grid, if the ratio is large and they change in its direction."""
    if step.use.grid is None or not abs(math.log(step.ratio)) > _LARGE:
        return ()
    waves = step.use.grid[1]
    return step.use.grid if (waves.after > waves.before) == (step.ratio > 1) else ()


def _sectors(step: Step) -> list[Change]:
    """Returns sectors per request, if the ratio is large and they change in its direction."""
    large = abs(math.log(step.ratio)) > _LARGE
    return [one for one in step.use.sectors if large and (one.after < one.before) == (step.ratio > 1)]


def _by_unit(step: Step) -> list[str]:
    """Describes a unit near its peak that moves the same bytes in less time: as much less as its use grows."""
    found = _unit_that_explains(step)
    if found is None:
        return []
    traffic = _bytes(step.use.even[found.name].after)
    return [f"{UNITS[found.name]} {_span(found)} of its peak at the same traffic ({traffic})"]


def _unit_that_explains(step: Step) -> Change | None:
    if not step.ratio > 1:
        return None

    def off(one: Change) -> float:
        return abs(math.log(one.after / one.before) / math.log(step.ratio) - 1)

    near = [one for one in step.use.units if one.name in step.use.even and one.after >= _NEAR_PEAK_PCT]
    return next((one for one in sorted(near, key=off) if off(one) <= _MOST_OF_IT), None)


def _use(step: Step) -> list[str]:
    """Describes the busiest units, their traffic, the occupancy and the gap at a tile end, where they change."""
    told = [*_units(step), *_traffic(step), *_occupancy(step)]
    if end := step.use.tile_end:
        name, *gaps = end
        how = "falls" if gaps[1] < gaps[0] else "rises"
        whose = name if name == step.parent else f"{name}, the nearest ancestor with a timeline"
        ends = f"from {time_text(gaps[0])} (in {whose}) to {time_text(gaps[1])}"
        told += (
            [f"the median pipeline bubble at the end of a tile {how} {ends}"]
            if max(gaps) >= _LEAST_GAP * min(gaps)
            else []
        )
    return told


def _units(step: Step) -> list[str]:
    units = [f"{UNITS[one.name]} {_span(one)}" for one in _told_units(step)]
    return [f"utilisation: {listed(units)}"] if units else []


def _told_units(step: Step) -> list[Change]:
    """Returns the units whose use is told after the factors."""
    if step.use.contended[1]:
        return []
    # At the same traffic, a slower kernel uses the unit less: no reason, but a result.
    even = step.use.even if step.ratio < 1 or _unit_that_explains(step) else {}
    return [one for one in step.use.units if one.name not in even]


def _traffic(step: Step) -> list[str]:
    moved = [f"{_MOVED_BY[one.name]} {_span(one)}" for one in step.use.traffic]
    return [f"traffic: {listed(moved)}"] if moved else []


def _occupancy(step: Step) -> list[str]:
    if step.use.occupancy is None:
        return []
    blocks = f" ({_span(step.use.blocks)} blocks per SM)" if step.use.blocks else ""
    return [f"theoretical occupancy {_span(step.use.occupancy)}{blocks}"]


def _unexplained(step: Step) -> str:
    """Returns why the counters of the longest kernel do not account for a step."""
    if step.is_elsewhere:
        kernel, others = (_us_span(*pair) for pair in (step.kernel_us, step.others_us))
        return f"the longest kernel takes {kernel} under ncu, the other kernels of the launch {others}"
    if step.is_within_runs:
        own, runs = (100 * (max(one, 1 / one) - 1) for one in (step.ratio, step.remainder))
        than = f"that between the profiled and the timed launches ({runs:.2g} %)"
        return f"the counters cannot explain the difference ({own:.2g} %): it is smaller than {than}"
    return f"the counters account for less than half of the difference from {step.parent}"


def _offset(step: Step) -> tuple[str, ...]:
    """Describes the state that a tied step saves most in, and those that cost that again; empty without any."""
    less = [one for one in step.states if one.share >= _LEAST_TIED][:1]
    more = [one for one in step.states if one.share < 0][:_MOST_OFFSETS]
    if not less or -sum(one.share for one in more) < _LEAST_TIED:
        return ()
    kept = next(n for n in range(1, len(more) + 1)
                if n == len(more) or -sum(one.share for one in more[:n]) >= _MOST_OF_IT * less[0].share)  # fmt: skip
    costs = listed([_tied_state(one, step) for one in more[:kept]])
    return (f"Less time in {_tied_state(less[0], step)}; more in {costs}.",)


def _tied_state(state: StateChange, step: Step) -> str:
    what, *_, parents = _waited_for(state, step)
    about = "" if state.name == ISSUING else f" (waiting for {', '.join(filter(None, (what, parents)))})"
    return f"{state_name(state.name)}{about}: {state_span(state, step)}"


def _clock(step: Step) -> tuple[str, ...]:
    if step.clock is None or not _weight(step.clock, step) >= _LEAST_FACTOR:
        return ()
    before, after = step.clock.change.before, step.clock.change.after
    ends = f"{short_number(before)} to {short_number(after)} MHz"
    return (f"The mean SM clock during a launch {'rises' if after > before else 'falls'} from {ends}.",)


def brief(step: Step) -> tuple[str, ...]:
    """Returns what a step brings on one line, then at most three reasons of a few words: for it, then against it."""
    if math.isnan(step.ratio) or step.gap:
        head = f"{_head(step).rstrip('.')}; " if not math.isnan(step.ratio) else ""
        return (f"{head}not {'explained' if head else 'compared'}: {gap_text(step)}",)
    if step.same_kernel:
        return (f"the same kernel as {step.parent}",)
    above = f" ({times_text(step.ancestor[1])} as fast as {step.ancestor[0]})" if step.ancestor else ""
    head = f"{_head(step).rstrip('.')}{above}"
    if not step.explicable:
        return (head,) if step.tied else (head, _unexplained(step))
    sign = 1 if step.ratio > 1 else -1
    for_it: list[str] = []
    against: list[str] = []
    for factor in main_factors(step):
        text = _factor(replace(factor, evidence=()))
        (for_it if sign * math.log(factor.factor) > 0 else against).append(text)
    states = main_states(step)
    mine = [_brief_state(state, step) for state in states if sign * state.share > 0]
    others = [_brief_state(state, step) for state in states if sign * state.share < 0]
    moved = [*_traffic(step), *_units(step)]
    causes = [*_contended(step), *_parallel(step), *_by_unit(step)]
    first = [*causes, *moved, *mine[:1]] if step.use.idle else [*(causes or for_it[:1]), *mine[:1]]
    costs = others[:1] if step.ratio > 1 else []  # before traffic; what a slower step saves comes after it
    reasons = [*first, *costs, *moved, *others, *(against[:1] if for_it or mine else []), *mine, *for_it]
    reasons = list(dict.fromkeys(reasons))
    rest = (
        [f"it launches the kernel of {step.twin.variant}{'' if step.twin.same else ', recompiled'}"]
        if step.twin
        else []
    )
    return (head, *[*rest, *reasons][:_MOST_REASONS])


def _brief_state(state: StateChange, step: Step) -> str:
    what, *_ = _waited_for(state, step)
    about = "" if state.name == ISSUING else f" ({what})"
    return (
        f"{'less' if state.share > 0 else 'more'} {state_name(state.name)}{about}: {state_span(state, step)}"
    )


def _head(step: Step) -> str:
    if step.tied:
        return f"As fast as {step.parent} within noise ({step.ratio:.3f}x)."
    if abs(math.log(step.ratio)) <= math.log1p(_SAME):
        percent = 100 * (max(step.ratio, 1 / step.ratio) - 1)
        return f"{percent:.2g} % {'faster' if step.ratio > 1 else 'slower'} than {step.parent}."
    if step.ratio > 1:
        return f"{times_text(step.ratio)} as fast as {step.parent}."
    return f"Takes {times_text(1 / step.ratio)} the time of {step.parent}."


def _beyond_parent(step: Step) -> tuple[str, ...]:
    """Compares with an ancestor that is faster than the parent, which the step may only win back."""
    if step.ancestor is None:
        return ()
    name, ratio = step.ancestor
    return (f"Compared with {name}, which is faster than {step.parent}, it is {times_text(ratio)} as fast.",)


def _same_kernel(step: Step) -> tuple[str, ...]:
    """Says that another variant launches the same kernel, or the same one with other machine code."""
    twin = step.twin
    if twin is None:
        return ()
    if twin.same:
        alike = "(equal opcode counts, registers, grid and executed instructions)"
        return (f"At {step.case}, it launches the same kernel as {twin.variant} {alike}.",)
    told = (step.parent, step.ancestor[0] if step.ancestor else "")
    tied = ", tied within noise" if twin.tied else ""
    speed = f"; it reaches {times_text(twin.ratio)} the speed of {twin.variant}{tied}"
    code = f"{twin.instructions[1]} instead of {twin.instructions[0]} instructions, {twin.registers} registers in both"
    return (
        f"At {step.case}, it launches the kernel of {twin.variant}, compiled to different machine code"
        f" ({code}){'' if twin.variant in told else speed}.",
    )


def _remark(step: Step) -> tuple[str, ...]:
    return (f"{_capital(text)}.",) if (text := _partial(step)) else ()


def _weight(factor: Factor, step: Step) -> float:
    """Returns a factor's part of the ratio on a logarithmic scale; 0 for a factor within noise."""
    size = abs(math.log(factor.factor))
    least = -math.log(_NOISE.get(factor.change.name, _LEAST_CHANGE))
    return size / max(abs(math.log(step.ratio)), math.log1p(0.05)) if size >= least else 0.0


def _factor(factor: Factor) -> str:
    """Describes a factor: "instructions 11.8 G → 6.6 G (1.79x, mainly LDG instructions 4.29 G → 134 M)"."""
    moved = factor.change.after - factor.change.before
    whole = sum(one.after - one.before for one in factor.evidence) / moved if moved else 0.0
    word = "mainly" if whole > _MOST_OF_IT else "including"
    evidence = f", {word} {listed([_moved(c) for c in factor.evidence])}" if factor.evidence else ""
    if factor.evidence and factor.evidence[0].name == WAVES:
        fuller = "fuller" if factor.factor > 1 else "less full"
        evidence = f", with a {fuller} last wave of blocks: {_span(factor.evidence[0])} waves"
    return f"{_moved(factor.change)} ({times_text(factor.factor)}{evidence})"


def _states(step: Step) -> list[str]:
    """Describes the states of `_told_states`, and the counters that changed along with them, each value once."""
    said, found = set(_evidence_told(step)), []
    for state in _told_states(step):
        found.append(_state(state, step, said))
        said |= {change.name for change in state.evidence}
    return found


def _told_states(step: Step) -> tuple[StateChange, ...]:
    """Returns the two states that changed most in the step's direction, and the largest one against it."""
    found = main_states(step)
    if abs(math.log(step.ratio)) > _LARGE:  # then all states change, and those that change most are enough
        found = tuple(one for one in found if one.share / found[0].share >= _MOST_OF_IT)
    return found


def main_states(step: Step) -> tuple[StateChange, ...]:
    """Returns the two states that changed most in the step's direction, then the largest one against it.

    None if no state changed in its direction: what a step saves does not explain why it is slower.
    """
    states = [one for one in step.states if abs(one.share) >= _LEAST_STATE]
    if step.use.idle:  # then the time in which warps issue grows with that in which they poll
        states = [one for one in states if one.name != ISSUING]
    saved = [s for s in states if s.share > 0]
    lost = [s for s in states if s.share < 0]
    mine, others = (saved, lost) if step.ratio > 1 else (lost, saved)
    return (*mine[:_MOST_STATES], *others[:1]) if mine else ()


def _state(state: StateChange, step: Step, said: Collection[str]) -> str:
    what, place, parents = _waited_for(state, step)
    where = ", ".join(filter(None, (f"{state.name}{place}", parents)))
    text = "Issuing or ready" if state.name == ISSUING else f"Waiting for {what} ({where})"
    text += f": {state_span(state, step)}"
    if not state.evidence:
        return f"{text}."
    spans = {change.name: "" if change.name in said else f" ({_span(change)})" for change in state.evidence}
    moved = listed([f"{name_of(change)}{spans[change.name]}" for change in state.evidence])
    return f"{text}; {moved} {'fell' if state.share > 0 else 'rose'} as well."


def state_span(state: StateChange, step: Step) -> str:
    """Returns the time that a state costs in the kernels of parent and variant: "124 → 257 µs"."""
    return _us_span(*(share * step.kernel_us[0] for share in (state.before, state.after)))


def _us_span(before: float, after: float) -> str:
    """Returns two times in one unit: "124 → 257 µs", "2.43 → 0 µs", "34.6 → 0.08 ms"."""
    scale, unit = (1e3, "ms") if max(before, after) >= _MS else (1.0, "µs")
    ends = (
        short_number(us / scale) if us >= _LEAST_END * max(before, after) else "0" for us in (before, after)
    )
    return f"{' → '.join(ends)} {unit}"


def _waited_for(state: StateChange, step: Step) -> tuple[str, str, str]:
    """Returns what the state waits for in the variant's kernel and where, and in its parent's if that is another wait.

    A kernel that spends no time in the state waits for nothing: then it is told of the other one only.
    """
    what, place = _waits_for(state.name, state.wait)
    before, _ = _waits_for(state.name, state.parents)
    least = _LEAST_END * max(state.before, state.after)
    if state.after < least:
        return before, "", ""
    differs = before not in what and state.before >= least
    return what, place, f"where {step.parent} waits for {before}" if differs else ""


def _waits_for(state: str, wait: Wait | None) -> tuple[str, str]:
    """Returns what a warp in this state waits for, and where, if the hot lines show it; "" if not."""
    if wait is None:
        return WAITS_FOR.get(state, state.replace("_", " ")), ""
    what, kind = _WAITS[wait.what]
    return what, f", mostly at {kind} of {wait.line}" if wait.line else ""


def state_name(name: str) -> str:
    """Returns the name of a warp state for display."""
    return "issuing or ready" if name == ISSUING else name


def gap_text(step: Step) -> str:
    """Returns why a step is not explained."""
    if step.gap == "no_parent":
        return f"{step.parent} is not in the tables"
    if step.gap == "no_status":
        why = ("not run" if one == "own_limit" else one.replace("_", " ") for one in step.gap_detail)
        return " and ".join(f"{of} has no time ({text})" for of, text in zip(step.gap_of, why, strict=True))
    if step.gap == "no_time":
        return f"{' and '.join(step.gap_of)} {'have' if len(step.gap_of) > 1 else 'has'} no cold time"
    return f"{step.gap_of[0]} lacks counters: {', '.join(step.gap_detail)}"


def bound_gap_text(bound: Bound) -> str:
    """Returns why it is unknown what bounds a kernel."""
    return bound.gap_detail or "the tables contain no throughput metrics for it"


def _partial(step: Step) -> str:
    """Returns a caveat if a launch has several kernels: the counters cover only the longest of them."""
    pairs = zip((step.parent, step.variant), step.kernel_us, step.others_us, strict=True)
    shares = {name: own / (own + others) for name, own, others in pairs if own > 0}
    part = ", ".join(f"of {name}, {100 * s:.0f} % of its time" for name, s in shares.items() if s < _WHOLE)
    return f"the counters cover only the longest kernel {part}" if part else ""


def share_text(share: float) -> str:
    """Formats a share of cycles as a percentage with two digits and no sign: "9.7 %", "92 %"; "0 %" below 0.05 %."""
    percent = 100 * abs(share)
    if percent < 0.05:
        return "0 %"
    return f"{percent:.0f} %" if percent >= 9.95 else f"{percent:.1f} %"


def name_of(change: Change) -> str:
    """Returns the plain name of what changed: "LDG instructions"."""
    plain = NAMES.get(change.name, change.name)
    return f"{plain.removeprefix('inst_').upper()} instructions" if plain.startswith("inst_") else plain


def _moved(change: Change) -> str:
    return f"{name_of(change)} {_span(change)}"


def _span(change: Change) -> str:
    """Returns the values before and after with their unit: "99.6 % → 49.3 %"."""
    return f"{value_text(change.name, change.before)} → {value_text(change.name, change.after)}"


def value_text(name: str, value: float) -> str:
    """Formats a counter with the unit that its name gives: "99.6 %", "1650 MHz", "1.11 GB", "14.5 M"."""
    if "_bytes" in name:
        return _bytes(value)
    return short_number(value) + (" %" if name.endswith("_pct") else " MHz" if name.endswith("_mhz") else "")


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


_WHOLE, _WHOLE_PCT = 0.95, 99.95
_LEAST_CONFLICTS, _LEAST_WAVEFRONTS = 0.05, 0.01
LEAST_TRAFFIC = 0.05  # by which traffic differs from the compulsory traffic, to be told as more or less
_LEAST_CLOCK = 0.99
_LEAST_L1_PCT = 0.5


def bound_sentences(bound: Bound, said: Collection[str] = ()) -> tuple[str, ...]:
    """Describes what bounds the kernel, the stall its warps spend most cycles in, and what limits long runs.

    `said` holds the counters whose values the reader knows, and the states whose waits: see `values_told`.
    """
    if bound.gap:
        return (f"What bounds it is unknown: {bound_gap_text(bound)}.", *long_run_sentences(bound.long_run))
    text = [*long_run_sentences(bound.long_run), _ceiling(bound, said)]
    if bound.stall:
        what, place = _waits_for(bound.stall, bound.wait)
        share = f"{share_text(bound.stall_pct / 100)} of warp cycles"
        why = f" ({share})" if bound.stall in said else f" ({share}{place}): waiting for {what}"
        text.append(f"The largest stall is {bound.stall}{why}.")
    if bound.copies_us > 0:
        text.append(
            f"The counters describe its kernel only: copies take {time_text(bound.copies_us)} of a launch."
        )
    elif abs(bound.profiled_cycles - 1) >= _LEAST_DEVIATION:
        times = times_text(bound.profiled_cycles)
        text.append(f"The counters are of a launch that took {times} the cycles of the timed ones.")
    return tuple(text)


def _ceiling(bound: Bound, said: Collection[str]) -> str:
    known, more, ceiling = bound.ceiling in said, "", UNITS[bound.ceiling]
    used = "" if known else f", at {short_number(bound.ceiling_pct)} %"
    beside = f"{short_number(bound.beside_pct)} %"
    if not math.isnan(bound.beside_pct) and bound.kind in ("near", "memory"):
        is_l2 = bound.ceiling == "l2_throughput_pct"
        more = f"; device memory is at {beside}" if is_l2 else f"; the same bytes use {beside} of L2"
    if not math.isnan(bound.shared):
        number = "" if TRAFFIC[1] in said else f"{short_number(bound.shared)} "
        more = f", mainly through its {number}shared-memory wavefronts"
    if bound.l1_bytes_pct >= _LEAST_L1_PCT:
        part = "" if more else "in its busiest part; "
        more += (
            f" ({part}global and local accesses use {short_number(bound.l1_bytes_pct)} % of its bandwidth)"
        )
    at_rest = "At rest, it" if bound.long_run and bound.long_run.at_rest else "It"
    several = bound.ceiling == "issue_active_pct"
    of_peak = f"{used} of {'their' if several else 'its'} peak" if used else ""
    far = f"No unit is near its peak; the busiest {'are' if several else 'is'} {ceiling}{used}{more}"
    grid = "The grid does not fill the GPU"
    if not math.isnan(bound.blocks + bound.sms + bound.waves):
        blocks = f"{short_number(bound.blocks)} blocks for {bound.sms:.0f} SMs"
        grid += f": {blocks} ({short_number(bound.waves)} waves)"
    return {
        "near": f"The busiest unit{'s are' if several else ' is'} {ceiling}{of_peak}{more}.",
        "queue": f"{far}. Most cycles are waits for room in a queue.",
        "latency": f"{far}. Latency is the likely bound.",
        "launch": f"{far}. {grid}.",
        "atomics": f"{far}. Its global atomics contend for few addresses, and L2 serialises those on one address.",
    }.get(bound.kind, f"{at_rest} is bound by {ceiling}{of_peak}{more}.")


def long_run_sentences(run: LongRun | None) -> tuple[str, ...]:
    """Says what limits launches back to back, and how long one takes then.

    Empty if no limit is known and the clock stays as it is.

    The clock and the power are left out where they are unknown.
    """
    if run is None:
        return ()
    if not run.limited_by and not run.to_mhz < _LEAST_CLOCK * run.from_mhz:
        return ()  # the next launch waits for the writes of the last one, or for another reason that no limit is
    what = f"{run.regime.capitalize()}, launches are limited by {run.limited_by or 'an unknown cause'}"
    clock = (
        f"set SM clock {run.from_mhz:.0f} → {run.to_mhz:.0f} MHz"
        if not math.isnan(run.from_mhz + run.to_mhz)
        else ""
    )
    power = "" if math.isnan(run.watts) else f"{run.watts:.0f} W"
    at = " at ".join(filter(None, (clock, power)))
    rest = "at rest" if run.at_rest else "with a cold L2"
    times = f"{time_text(run.long_us)} a launch, {times_text(run.long_us / run.rest_us)} the time {rest}"
    return (f"{what}: {'; '.join(filter(None, (at, times)))}.",)


def times_text(ratio: float) -> str:
    """Formats a ratio with three digits: "1.00x", "26.0x", "107x"."""
    return f"{f'{ratio:#.3g}'.rstrip('.')}x"


def time_text(us: float) -> str:
    """Formats a time, in milliseconds from 1000 µs on: "2.94 µs", "308.8 µs", "3.088 ms", "275.82 ms"."""
    if us >= 1e3:
        return f"{us / 1e3:.2f} ms" if us >= 1e4 else f"{us / 1e3:.3f} ms"
    return f"{us:.1f} µs" if us >= 100 else f"{us:.2f} µs"


def occupancy_sentences(bound: Bound, said: Collection[str] = ()) -> tuple[str, ...]:
    """Describes the occupancy and what limits it; `said` as for `bound_sentences`."""
    if bound.gap or math.isnan(bound.theoretical_pct):
        return ()
    whole = bound.theoretical_pct >= _WHOLE_PCT
    limits = listed([name.replace("_", " ") for name in bound.limiters])
    limited = f"limited by {limits}" if limits and not whole else ""
    if "theoretical_occupancy_pct" in said:
        text = f"Theoretical occupancy is {limited}" if limited else ""
    else:
        text = f"Theoretical occupancy is {short_number(bound.theoretical_pct)} %"
        text += f", {limited}" if limited else ""
    if not math.isnan(bound.achieved_pct):
        text += f"{'; achieved' if text else 'Achieved'} occupancy is {short_number(bound.achieved_pct)} %"
        above = short_number(bound.achieved_pct) != short_number(bound.theoretical_pct)
        if above and bound.achieved_pct > bound.theoretical_pct:
            text += " (more than theory allows: the counters are inexact)"
    return (f"{text}.",) if text else ()


def traffic_sentences(
    values: Mapping[str, float], compulsory_bytes: float, said: Collection[str] = ()
) -> tuple[str, ...]:
    """Compares device-memory traffic with the compulsory traffic, and describes the cost of bank conflicts.

    `values` holds the metrics TRAFFIC. Conflicts are mentioned from 5 % of the wavefronts on, unless there are fewer
    than one per 100 instructions. `said` as for `bound_sentences`.
    """
    moved, whole, excess, instructions = (values.get(name, math.nan) for name in TRAFFIC)
    text = []
    if moved > 0 and compulsory_bytes > 0:
        times = moved / compulsory_bytes
        digits = 2 if times < 1 else 1 if times < 9.95 else 0
        how = "about" if abs(times - 1) < LEAST_TRAFFIC else f"{times:.{digits}f} times"
        least = f"{how} the compulsory {_bytes(compulsory_bytes)}"
        known = TRAFFIC[0] in said
        what = (
            "Device-memory traffic is"
            if known
            else f"The kernel moves {_bytes(moved)} to and from device memory,"
        )
        text.append(f"{what} {least}.")
    if excess >= _LEAST_CONFLICTS * whole > 0 and not whole < _LEAST_WAVEFRONTS * instructions:
        number = "" if TRAFFIC[1] in said else f"{short_number(whole)} "
        text.append(
            f"Bank conflicts cause {share_text(excess / whole)} of its {number}shared-memory wavefronts."
        )
    return tuple(text)


OVERLAP = ("wall_us", "kernel_us", "to_device_us", "to_host_us", "copy_hidden_pct")
_ENGINES = {"to_device_us": "copies in for", "kernel_us": "kernels for", "to_host_us": "copies out for"}


def overlap_sentences(
    values: Mapping[str, float], parent: str, of_parent: Mapping[str, float]
) -> tuple[str, ...]:
    """Describes how far copies and kernels overlap, compared with the parent; empty without the metrics OVERLAP."""
    if any(math.isnan(values.get(name, math.nan)) for name in OVERLAP):
        return ()
    busy = listed([f"{words} {time_text(values[name])}" for name, words in _ENGINES.items()])
    hidden = values["copy_hidden_pct"] / 100
    share = share_text(hidden)
    before = of_parent.get("copy_hidden_pct", math.nan) / 100
    compared = (
        "" if math.isnan(before) or share_text(before) == share else f" ({share_text(before)} in {parent})"
    )
    return (
        f"Traced back to back, a launch takes {time_text(values['wall_us'])}, with {busy}.",
        f"{f'{share} of the' if share != '0 %' else 'No'} copy time is overlapped{compared}.",
    )


def _bytes(count: float) -> str:
    return f"{short_number(count)}B" if count >= 1e4 else f"{count:.0f} B"
