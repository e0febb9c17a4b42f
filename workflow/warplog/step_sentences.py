"""Steps of the ladder as sentences that say what their numbers support."""

import math
from collections.abc import Mapping, Sequence

from warplog.decomposition import Change, Factor, StateChange, Step

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
    span = f"{number(state.change.before)} → {number(state.change.after)} cycles per instruction"
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
    return f"{number(change.before)}{unit} → {number(change.after)}{unit}"


def _listed(texts: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join([*([", ".join(texts[:-1])] if texts[:-1] else []), *texts[-1:]])


def number(value: float) -> str:
    """Three digits, with k, M, G or T: "285 M"; "n/a" for NaN."""
    if not math.isfinite(value):
        return "n/a"
    for size, letter in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= 0.9995 * size:
            return f"{value / (1e3 if letter == ' k' else size):.3g}{letter}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2g}" if abs(value) < 1 else f"{value:.3g}"
