"""Sentences about the steps of a ladder and about what bounds a kernel, as far as the counters show."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from warplog.core.numbers import short_number
from warplog.tables.regimes import LongRun
from warplog.worklog.bounds import NAMES as UNITS
from warplog.worklog.bounds import Bound
from warplog.worklog.code.waits import Wait
from warplog.worklog.decomposition import WAVES, Change, Factor, StateChange, Step
from warplog.worklog.kinship import Twin

NAMES = {
    "instructions_executed": "instructions",
    "ipc": "instructions per cycle",
    "sm_busy_pct": "SM activity",
    "sm_mhz": "mean SM clock",
    "shared_wavefronts_excess": "excess shared wavefronts",
    "shared_wavefronts": "shared wavefronts",
    "global_load_sectors_per_request": "sectors per global load",
    "global_store_sectors_per_request": "sectors per global store",
    "dram_bytes": "DRAM bytes",
    "dram_bytes_written": "DRAM bytes written",
    "l2_bytes": "L2 bytes",
    "l1_bytes": "L1 bytes",
    "waves_per_sm": "waves of blocks",
}
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
# Smallest part of the ratio (log scale) for a factor to be mentioned, and share of cycles for a state.
_LEAST_FACTOR, _LEAST_STATE, _MOST_STATES = 0.1, 0.02, 2
_LEAST_CHANGE = 0.02  # a smaller factor is not mentioned, however small the ratio is
_MOST_OF_IT = 0.5
_MOST_REASONS = 3
_SAME = 0.005
_LEAST_TIED = 0.05  # share of cycles of a state of a tied step
_LEAST_GAP = 1.25
_LEAST_DEVIATION = 0.05  # of the cycles of the profiled launch from those of the timed ones


def sentence(step: Step) -> str:
    """Describes the step in a few sentences on one line."""
    return " ".join(sentences(step))


def sentences(step: Step) -> tuple[str, ...]:
    """Describes the speed-up of a step, its factors above and below 1, the clock and the states.

    Only the speed-up if the times are tied, if the parent launches the same kernel, or if no counter accounts for it.
    """
    if math.isnan(step.ratio):
        return (f"Not compared with {step.parent} because {step.gap}.",)
    head = (_head(step), *_beyond_parent(step), *_same_kernel(step))
    if step.gap:
        return (*head, f"Not explained because {step.gap}.")
    if step.tied or step.same_kernel:
        return (*head, *_offset(step))
    if not step.explicable:
        return (*head, "No counter accounts for this difference.", *_clock(step), *_remark(step))
    large = _large(step)
    if not any((one.factor > 1) == (step.ratio > 1) for one in large) and not step.use.idle:
        large = []
    helping = [_factor(factor) for factor in large if factor.factor > 1]
    hindering = [_factor(factor) for factor in large if factor.factor <= 1]
    sides = [f"Factors above 1: {_listed(helping)}."] if helping else []
    sides += [f"Factors below 1: {_listed(hindering)}."] if hindering else []
    told = (*sides, *_use(step)) or ("No factor stands out.",)
    return (*head, *told, *_clock(step), *_states(step), *_remark(step))


def _large(step: Step) -> list[Factor]:
    """Returns the factors to mention, the largest first; never the clock, which results from the others."""
    return [one for one in step.causes if _weight(one, step) >= _LEAST_FACTOR]


def _use(step: Step) -> tuple[str, ...]:
    """Describes the busiest units, their traffic, the blocks on an SM and the gap at a tile end, where they change."""
    blocks, text = step.use.blocks, [*_units(step), *_traffic(step)]
    text += [f"blocks per SM {blocks.before:.0f} → {blocks.after:.0f}"] if blocks else []
    told = [f"{one[0].upper()}{one[1:]}." for one in text]
    if end := step.use.tile_end:
        name, *gaps = end
        span = " → ".join(map(time_text, gaps))
        told += (
            [f"The median gap in computing at a tile end is {span}, compared with {name}."]
            if max(gaps) >= _LEAST_GAP * min(gaps)
            else []
        )
    return tuple(told)


def _units(step: Step) -> list[str]:
    units = [f"{UNITS[one.name]} {_span(one)}" for one in step.use.units]
    return [f"utilisation: {_listed(units)}"] if units else []


def _traffic(step: Step) -> list[str]:
    return [f"traffic: {_listed([_moved(one) for one in step.use.traffic])}"] if step.use.traffic else []


def _offset(step: Step) -> tuple[str, ...]:
    """Describes the largest stalls that a tied step saves and costs; empty if it changes too little."""
    if not step.tied or step.same_kernel:
        return ()
    stalls = [one for one in step.states if one.is_stall and abs(one.share) >= _LEAST_TIED]
    less = [_brief_state(one, step) for one in stalls if one.share > 0][:1]
    more = [_brief_state(one, step) for one in stalls if one.share < 0][:1]
    return (f"{less[0][0].upper()}{less[0][1:]}, offset by {more[0]}.",) if less and more else ()


def _clock(step: Step) -> tuple[str, ...]:
    if step.clock is None or not _weight(step.clock, step) >= _LEAST_FACTOR:
        return ()
    ends = f"{short_number(step.clock.change.before)} to {short_number(step.clock.change.after)} MHz"
    return (
        f"The mean SM clock during a launch goes from {ends}: the more power a kernel draws, the lower it is.",
    )


def brief(step: Step) -> tuple[str, ...]:
    """Returns what a step brings on one line, then at most three reasons of a few words: for it, then against it."""
    if math.isnan(step.ratio) or step.gap:
        head = f"{_head(step).rstrip('.')}; " if not math.isnan(step.ratio) else ""
        return (f"{head}not {'explained' if head else 'compared'}: {step.gap}",)
    above = f" ({times_text(step.ancestor[1])} as fast as {step.ancestor[0]})" if step.ancestor else ""
    head = f"{_head(step).rstrip('.')}{above}"
    if step.same_kernel:
        return (head, "it launches the same kernel")
    if not step.explicable:
        return (head, "no counter accounts for this difference") if not step.tied else (head,)
    sign = 1 if step.ratio > 1 else -1
    for_it: list[str] = []
    against: list[str] = []
    for factor in _large(step):
        text = f"{_factor(replace(factor, evidence=())).removesuffix(')')}x)"
        (for_it if sign * math.log(factor.factor) > 0 else against).append(text)
    states = main_states(step)
    mine = [_brief_state(state, step) for state in states if sign * state.share > 0]
    others = [_brief_state(state, step) for state in states if sign * state.share < 0]
    moved = [*_traffic(step), *_units(step)]
    first = [*moved, *mine[:1]] if step.use.idle else [*for_it[:1], *mine[:1]]
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
    what, _ = _waits_for(state.name, state.wait)
    span = f"{share_text(state.before)} → {share_text(state.after)} of the cycles of {step.parent}"
    return f"{'less' if state.share > 0 else 'more'} {state.name} ({what}): {span}"


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
    told = (step.parent, step.ancestor[0] if step.ancestor else "")
    speed = "" if twin.variant in told else f"; {_over(twin)}"
    if twin.same:
        alike = "(equal opcode counts, registers, grid and executed instructions)"
        return (f"At {step.case}, it launches the same kernel as {twin.variant} {alike}{speed}.",)
    code = (
        f"{twin.instructions[1]} instead of {twin.instructions[0]} instructions, {twin.registers} registers"
    )
    return (
        f"At {step.case}, it launches the kernel of {twin.variant}, compiled to other machine code ({code}){speed}.",
    )


def _over(twin: Twin) -> str:
    tied = ", tied within noise" if twin.tied else ""
    return f"it reaches {times_text(twin.ratio)} the speed of {twin.variant}{tied}"


def _remark(step: Step) -> tuple[str, ...]:
    return (f"{step.remark[0].upper()}{step.remark[1:]}.",) if step.remark else ()


def _weight(factor: Factor, step: Step) -> float:
    """Returns a factor's part of the ratio on a logarithmic scale; 0 for a factor near 1."""
    size = abs(math.log(factor.factor))
    return (
        size / max(abs(math.log(step.ratio)), math.log1p(0.05)) if size >= math.log1p(_LEAST_CHANGE) else 0.0
    )


def _factor(factor: Factor) -> str:
    """Describes a factor: "instructions 11.8 G → 6.6 G (1.79, mainly LDG instructions 4.29 G → 134 M)"."""
    name, change = NAMES.get(factor.change.name, factor.change.name), _span(factor.change)
    moved = factor.change.after - factor.change.before
    whole = sum(one.after - one.before for one in factor.evidence) / moved if moved else 0.0
    word = "mainly" if whole > _MOST_OF_IT else "including"
    evidence = f", {word} {_listed([_moved(c) for c in factor.evidence])}" if factor.evidence else ""
    if factor.evidence and factor.evidence[0].name == WAVES:
        evidence = f", with {_span(factor.evidence[0])} waves of blocks"
    return f"{name} {change} ({f'{factor.factor:#.3g}'.rstrip('.')}{evidence})"


def _states(step: Step) -> list[str]:
    """Describes the two stalls that changed most in the step's direction, and the largest one against it."""
    told = [_state(state, step) for state in main_states(step)]
    other = any(one.is_stall and abs(one.share) >= _LEAST_STATE for one in step.states)
    return told or ([f"No stall accounts for the {'gain' if step.ratio > 1 else 'loss'}."] if other else [])


def main_states(step: Step) -> tuple[StateChange, ...]:
    """Returns the two stalls that changed most in the step's direction, then the largest one against it.

    None if no stall changed in its direction: what a step saves does not explain why it is slower.
    """
    stalls = [s for s in step.states if s.is_stall and abs(s.share) >= _LEAST_STATE]
    saved = [s for s in stalls if s.share > 0]
    lost = [s for s in stalls if s.share < 0]
    mine, others = (saved, lost) if step.ratio > 1 else (lost, saved)
    return (*mine[:_MOST_STATES], *others[:1]) if mine else ()


def _state(state: StateChange, step: Step) -> str:
    less = state.share > 0
    span = f"{share_text(state.before)} → {share_text(state.after)} of the cycles of {step.parent}"
    what, place = _waits_for(state.name, state.wait)
    text = f"{'Less' if less else 'More'} time waiting for {what} ({state.name}{place}): {span}"
    if not state.evidence:
        return f"{text}."
    moved = _listed([f"{name_of(change)} ({_span(change)})" for change in state.evidence])
    return f"{text}; {moved} {'fell' if less else 'rose'} as well."


def _waits_for(state: str, wait: Wait | None) -> tuple[str, str]:
    """Returns what a warp in this state waits for, and where, if the hot lines show it; "" if not."""
    return (wait.what, wait.place) if wait else (WAITS_FOR.get(state, state.replace("_", " ")), "")


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
    unit = " %" if change.name.endswith("_pct") else " MHz" if change.name.endswith("_mhz") else ""
    return f"{short_number(change.before)}{unit} → {short_number(change.after)}{unit}"


def _listed(texts: Sequence[str]) -> str:
    """Joins texts: "a", "a and b", "a, b and c"."""
    return " and ".join([*([", ".join(texts[:-1])] if texts[:-1] else []), *texts[-1:]])


TRAFFIC = ("dram_bytes", "shared_wavefronts", "shared_wavefronts_excess", "instructions_executed")
_WHOLE_PCT = 99.95
_LEAST_CONFLICTS, _LEAST_WAVEFRONTS, _LEAST_TRAFFIC = 0.05, 0.01, 0.95
_LEAST_CLOCK = 0.99
_LEAST_L1_PCT = 0.5


def bound_sentences(bound: Bound) -> tuple[str, ...]:
    """Describes what bounds the kernel, the stall its warps spend most cycles in, and what limits long runs."""
    if bound.gap:
        return (f"What bounds it is unknown: {bound.gap}.", *long_run_sentences(bound.long_run))
    text = [*long_run_sentences(bound.long_run), _ceiling(bound)]
    if bound.stall:
        what, place = _waits_for(bound.stall, bound.wait)
        share = f"{share_text(bound.stall_pct / 100)} of warp cycles{place}"
        text.append(f"The largest stall is {bound.stall} ({share}): waiting for {what}.")
    if abs(bound.profiled_cycles - 1) >= _LEAST_DEVIATION:
        times = times_text(bound.profiled_cycles)
        text.append(f"The counters are of a launch that took {times} the cycles of the timed ones.")
    return tuple(text)


def _ceiling(bound: Bound) -> str:
    used, more = f"{short_number(bound.ceiling_pct)} %", ""
    if not math.isnan(bound.l2_pct):
        more = f" (L2, through which this traffic passes, is at {short_number(bound.l2_pct)} %)"
    if bound.l1_bytes_pct >= _LEAST_L1_PCT:
        more = (
            f" (global and local accesses use {short_number(bound.l1_bytes_pct)} % of L1's bytes per cycle)"
        )
    at_rest = "At rest, it" if bound.long_run and bound.long_run.at_rest else "It"
    far = f"No unit is near its peak; the busiest is {bound.ceiling}, at {used}{more}"
    return {
        "near": f"The busiest unit is {bound.ceiling}, at {used} of its peak{more}.",
        "latency": f"{far}. Latency is the likely bound.",
        "launch": f"{far}. The grid does not fill the GPU.",
        "atomics": f"{far}. Its global atomics contend for few addresses, and L2 serialises those on one address.",
    }.get(bound.kind, f"{at_rest} is bound by {bound.ceiling}, at {used} of the peak{more}.")


def long_run_sentences(run: LongRun | None) -> tuple[str, ...]:
    """Says what limits launches back to back, and the time per launch at rest and then.

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
    longer = f"{times_text(run.long_us / run.rest_us)} the time"
    times = f"{time_text(run.rest_us)} {rest}, {time_text(run.long_us)} {run.regime} ({longer})"
    return (f"{what}: {'; '.join(filter(None, (at, times)))}.",)


def times_text(ratio: float) -> str:
    """Formats a ratio with three digits: "1.00x", "26.0x", "107x"."""
    return f"{f'{ratio:#.3g}'.rstrip('.')}x"


def time_text(us: float) -> str:
    """Formats a time, in milliseconds from 10 000 µs on: "2.94 µs", "3088.0 µs", "275.82 ms"."""
    return f"{us / 1e3:.2f} ms" if us >= 1e4 else f"{us:.1f} µs" if us >= 100 else f"{us:.2f} µs"


def occupancy_sentences(bound: Bound) -> tuple[str, ...]:
    """Describes the occupancy and what limits it."""
    if bound.gap or math.isnan(bound.theoretical_pct):
        return ()
    whole = bound.theoretical_pct >= _WHOLE_PCT
    limits = _listed([name.replace("_", " ") for name in bound.limiters])
    text = f"Theoretical occupancy is {short_number(bound.theoretical_pct)} %"
    text += f", limited by {limits}" if limits and not whole else ""
    if not math.isnan(bound.achieved_pct):
        text += f"; achieved occupancy is {short_number(bound.achieved_pct)} %"
        above = short_number(bound.achieved_pct) != short_number(bound.theoretical_pct)
        if above and bound.achieved_pct > bound.theoretical_pct:
            text += ", above the theoretical value by the inaccuracy of the counters"
    return (f"{text}.",)


def traffic_sentences(values: Mapping[str, float], compulsory_bytes: float) -> tuple[str, ...]:
    """Compares device-memory traffic with the compulsory traffic, and describes the cost of bank conflicts.

    `values` holds the metrics TRAFFIC. Conflicts are mentioned from 5 % of the wavefronts on, unless there are fewer
    than one per 100 instructions.
    """
    moved, whole, excess, instructions = (values.get(name, math.nan) for name in TRAFFIC)
    text = []
    if moved > 0 and compulsory_bytes > 0:
        times = moved / compulsory_bytes
        least = f"{f'{times:.1f}' if times < 9.95 else f'{times:.0f}'} times the compulsory {_bytes(compulsory_bytes)}"
        kept = ": what it wrote last is presumably still in L2 when it ends" if times < _LEAST_TRAFFIC else ""
        text.append(f"The kernel moves {_bytes(moved)} to and from device memory, {least}{kept}.")
    if excess >= _LEAST_CONFLICTS * whole > 0 and not whole < _LEAST_WAVEFRONTS * instructions:
        share = share_text(excess / whole)
        text.append(f"Bank conflicts cause {share} of its {short_number(whole)} shared-memory wavefronts.")
    return tuple(text)


OVERLAP = ("wall_us", "kernel_us", "to_device_us", "to_host_us", "longest_engine_pct", "copy_hidden_pct")
_ENGINES = {
    "kernel_us": "kernels",
    "to_device_us": "copies to the device",
    "to_host_us": "copies to the host",
}


def overlap_sentences(
    values: Mapping[str, float], parent: str, of_parent: Mapping[str, float]
) -> tuple[str, ...]:
    """Describes how far copies and kernels overlap, compared with the parent; empty without the metrics OVERLAP."""
    if any(math.isnan(values.get(name, math.nan)) for name in OVERLAP):
        return ()
    busiest = max(_ENGINES, key=lambda name: values[name])
    share, hidden = values["longest_engine_pct"], values["copy_hidden_pct"]
    text = f"The busiest engine ({_ENGINES[busiest]}) is active for {share_text(share / 100)} of the launch"
    before = of_parent.get("copy_hidden_pct", math.nan)
    compared = "" if math.isnan(before) else f" ({share_text(before / 100)} in {parent})"
    behind = f"{share_text(hidden / 100)} of the copy time passes while another engine is active{compared}"
    return (f"{text}.", f"{behind[0].upper()}{behind[1:]}.")


def _bytes(count: float) -> str:
    return f"{short_number(count)}B" if count >= 1e4 else f"{count:.0f} B"
