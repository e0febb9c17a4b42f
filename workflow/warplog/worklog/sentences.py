"""Sentences about steps of the ladder and about what bounds a kernel, as far as the numbers support them."""

import math
from collections.abc import Mapping, Sequence

from warplog.core.errors import WarplogError
from warplog.core.numbers import short_number
from warplog.metrics import occupancy
from warplog.worklog.bounds import Bound
from warplog.worklog.decomposition import Change, Factor, StateChange, Step

NAMES = {
    "instructions_executed": "instructions",
    "warp_cycles_per_issue": "cycles between two instructions of a warp",
    "achieved_occupancy_pct": "active warps",
    "sm_busy_pct": "busy SMs",
    "sm_mhz": "SM clock",
    "shared_wavefronts_excess": "excess shared wavefronts",
    "shared_wavefronts": "shared wavefronts",
    "global_load_sectors_per_request": "sectors per global load",
    "global_store_sectors_per_request": "sectors per global store",
    "dram_bytes": "DRAM bytes",
    "dram_bytes_written": "DRAM bytes written",
    "l2_bytes": "L2 bytes",
    "l1_bytes": "L1 bytes",
}
# What a warp waits for in a state, after "Warp Scheduler States" in the Nsight Compute Profiling Guide.
WAITS_FOR: Mapping[str, str] = {
    "barrier": "other warps at a barrier",
    "branch_resolving": "the target of a branch",
    "dispatch_stall": "the dispatcher",
    "drain": "its stores to leave",
    "gmma": "wgmma",
    "imc_miss": "constants that missed their cache",
    "lg_throttle": "room in the queue of global and local accesses",
    "long_scoreboard": "data from global or local memory",
    "math_pipe_throttle": "an arithmetic pipe",
    "membar": "a memory fence",
    "mio_throttle": "room in the queue of shared-memory and special instructions",
    "no_instruction": "an instruction to be fetched",
    "not_selected": "a turn, though ready to issue",
    "short_scoreboard": "data from shared memory or a special function",
    "sleeping": "the end of a sleep",
    "tex_throttle": "room in the queue of texture accesses",
    "wait": "a fixed latency",
}
_MORE_LESS = {"sm_busy_pct": ("busier SMs", "less busy SMs"), "sm_mhz": ("higher SM clock", "lower SM clock")}
# States that follow from the others: issuing itself, and waiting for another warp's issue.
_NO_STALL = ("selected", "not_selected")
_TOLD_FACTOR, _TOLD_STATE, _MOST_STATES = 0.1, 0.02, 2
_SAME = 0.005


def sentence(step: Step) -> str:
    """The step in a few sentences on one line."""
    return " ".join(sentences(step))


def sentences(step: Step) -> tuple[str, ...]:
    """How much faster the step is, which factors work for and against it, in which states, and what remains."""
    if math.isnan(step.ratio):
        return (f"No ratio to {step.parent}: {step.gap}.",)
    if abs(math.log(step.ratio)) <= math.log1p(_SAME):
        head = f"As fast as {step.parent} ({step.ratio:.3f} times)."
    else:
        back = "" if step.ratio > 1 else ", a step back"
        head = f"{step.ratio:.3g} times as fast as {step.parent}{back}."
    if step.gap:
        return (head, f"Not explained: {step.gap}.")
    told = [f for f in step.factors if _weight(f, step) >= _TOLD_FACTOR]
    sides = [
        f"{word}: {_listed([_factor(f) for f in told if (f.factor > 1) == (word == 'For it')])}."
        for word in ("For it", "Against it")
        if any((f.factor > 1) == (word == "For it") for f in told)
    ]
    remark = f"{step.remark[0].upper()}{step.remark[1:]}." if step.remark else ""
    parts = (head, *(sides or ["No factor stands out."]), _rest(step), *_states(step), remark)
    return tuple(part for part in parts if part)


def _rest(step: Step) -> str:
    if not step.explained:
        return f"The counters do not explain it: a factor of {step.remainder:.3f} remains."
    if abs(math.log(step.remainder)) <= math.log1p(_SAME):
        return f"All factors multiply to this ratio within {max(100 * abs(step.remainder - 1), 0.1):.1f} %."
    return f"A factor of {step.remainder:.3f} remains that no counter accounts for."


def _weight(factor: Factor, step: Step) -> float:
    """How much of the ratio a factor is, on a logarithmic scale; a ratio near 1 counts as 5 %."""
    return abs(math.log(factor.factor)) / max(abs(math.log(step.ratio)), math.log1p(0.05))


def _factor(factor: Factor) -> str:
    """ "1.79x fewer instructions (11.8 G → 6.6 G, most of all LDG 4.29 G → 134 M)"."""
    name, rises = factor.change.name, factor.change.after > factor.change.before
    more = "more" if rises else "fewer"
    what = _MORE_LESS[name][not rises] if name in _MORE_LESS else f"{more} {NAMES.get(name, name)}"
    proof = f", most of all {_listed([_moved(c) for c in factor.evidence])}" if factor.evidence else ""
    times = max(factor.factor, 1 / factor.factor)
    return f"{times:{'.3g' if times >= 1.005 else '.4g'}}x {what} ({_span(factor.change)}{proof})"


def _states(step: Step) -> list[str]:
    """The two stalls that moved the cycles most the step's way, and the one that did most against it."""
    stalls = [s for s in step.states if s.change.name not in _NO_STALL and abs(s.share) >= _TOLD_STATE]
    saved = [s for s in stalls if s.share > 0]
    lost = [s for s in stalls if s.share < 0]
    mine, others = (saved, lost) if step.ratio > 1 else (lost, saved)
    return [_state(state, step.parent) for state in (*mine[:_MOST_STATES], *others[:1])]


def _state(state: StateChange, parent: str) -> str:
    name, less = state.change.name, state.share > 0
    span = f"{short_number(state.change.before)} → {short_number(state.change.after)} cycles per instruction"
    word, other = ("less", "more") if less else ("more", "less")
    told = f"{word.capitalize()} waiting for {waits_for(name)}"
    if less == (state.change.after > state.change.before):  # other instructions, or warps to share it
        told = f"Waiting for {waits_for(name)}, {word} in all though {other} for an instruction of a warp,"
    told += f" ({name}, {span}) {'saves' if less else 'costs'} {share_text(state.share)} of {parent}'s cycles"
    if not state.evidence:
        return f"{told}."
    return f"{told}; {_listed([_moved(c) for c in state.evidence])} {'fell' if less else 'rose'} with it."


def waits_for(state: str) -> str:
    """What a warp in this state waits for."""
    return WAITS_FOR.get(state, state.replace("_", " "))


def share_text(share: float) -> str:
    """A share of cycles in percent, without its sign, with two digits: "9.7 %", "92 %"."""
    percent = 100 * abs(share)
    return f"{percent:.0f} %" if percent >= 9.95 else f"{percent:.1f} %"


def name_of(change: Change) -> str:
    """What changed, in words: "LDG instructions"."""
    plain = NAMES.get(change.name, change.name)
    return f"{plain.removeprefix('inst_').upper()} instructions" if plain.startswith("inst_") else plain


def _moved(change: Change) -> str:
    return f"{name_of(change)} {_span(change)}"


def _span(change: Change) -> str:
    """Before and after with their unit: "99.6 % → 49.3 %"."""
    unit = " %" if change.name.endswith("_pct") else " MHz" if change.name.endswith("_mhz") else ""
    return f"{short_number(change.before)}{unit} → {short_number(change.after)}{unit}"


def _listed(texts: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join([*([", ".join(texts[:-1])] if texts[:-1] else []), *texts[-1:]])


LAUNCH = ("registers_per_thread", "block_threads", "shared_bytes_per_block", "theoretical_occupancy_pct")
TRAFFIC = ("dram_bytes", "shared_wavefronts", "shared_wavefronts_excess")
_WHOLE_PCT = 99.95
_SAME_PCT = 0.1
_TOLD_CONFLICTS = 0.05


def bound_sentences(bound: Bound) -> tuple[str, ...]:
    """The nearest ceiling and the longest state of the variant's warps."""
    if bound.gap:
        return (f"What bounds it is not known: {bound.gap}.",)
    used = f"{bound.ceiling}, {short_number(bound.ceiling_pct)} % used"
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
    held = f"{short_number(bound.achieved_pct)} % were filled"
    if bound.theoretical_pct >= _WHOLE_PCT:
        return (f"The launch can fill all of an SM's warp slots; {held}.",)
    limits = " and ".join(name.replace("_", " ") for name in bound.limiters)
    room = f"The launch can fill {short_number(bound.theoretical_pct)} % of an SM's warp slots"
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
        told.append(
            f"Bank conflicts cause {share} of its {short_number(whole)} passes through shared memory."
        )
    return tuple(told)


def _bytes(count: float) -> str:
    return f"{short_number(count)}B" if count >= 1e4 else f"{count:.0f} B"


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
