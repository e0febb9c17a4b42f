"""Steps of the ladder as sentences that say what their numbers support."""

import math

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
# States that follow from the others: issuing itself, and waiting for another warp's issue.
_NO_STALL = ("selected", "not_selected")
_TOLD_FACTOR, _TOLD_STATE, _MOST_STATES = 0.1, 0.02, 2
_SAME = 0.005


def sentence(step: Step) -> str:
    """The step in one sentence, without the full stop."""
    if math.isnan(step.ratio):
        return f"no ratio to {step.parent}: {step.gap}"
    if abs(math.log(step.ratio)) <= math.log1p(_SAME):
        head = f"as fast as {step.parent} ({step.ratio:.3f}x)"
    else:
        head = f"{step.ratio:.3g}x {'over' if step.ratio > 1 else 'of the speed of'} {step.parent}"
    if step.gap:
        return f"{head}; not explained: {step.gap}"
    told = [f for f in step.factors if _weight(f, step) >= _TOLD_FACTOR]
    whole = [f"{change_text(f.change)} ({f.factor:.3g}x)" for f in told]
    parts = [_states_text(step), f"in all, {', '.join(whole)}" if whole else "no factor stands out"]
    rest = f"a factor of {step.remainder:.3f} remains"
    parts.append(rest if step.explained else f"the counters do not explain it: {rest}")
    return f"{head}: " + "; ".join(part for part in (*parts, step.remark) if part)


def _weight(factor: Factor, step: Step) -> float:
    """How much of the ratio a factor is, on a logarithmic scale; a ratio near 1 counts as 5 %."""
    return abs(math.log(factor.factor)) / max(abs(math.log(step.ratio)), math.log1p(0.05))


def _states_text(step: Step) -> str:
    """The two stalls that moved the cycles most the step's way, and the one that did most against it."""
    stalls = [s for s in step.states if s.change.name not in _NO_STALL and abs(s.share) >= _TOLD_STATE]
    saved = [s for s in stalls if s.share > 0]
    lost = [s for s in stalls if s.share < 0]
    mine, others = (saved, lost) if step.ratio > 1 else (lost, saved)
    texts = [_state(state, step.parent) for state in mine[:_MOST_STATES]]
    texts += [f"against it, {_state(state, step.parent)}" for state in others[:1]]
    return ", ".join(texts)


def _state(state: StateChange, parent: str) -> str:
    span = f"{number(state.change.before)} -> {number(state.change.after)} cycles per instruction"
    verb = "saves" if state.share > 0 else "costs"
    proof = f" ({', '.join(map(change_text, state.evidence))})" if state.evidence else ""
    return f"{state.change.name} {span} {verb} {100 * abs(state.share):.3g} % of {parent}'s cycles{proof}"


def change_text(change: Change) -> str:
    """A change in words and units: "LDG instructions 4.29 G -> 134 M"."""
    unit = " %" if change.name.endswith("_pct") else " MHz" if change.name.endswith("_mhz") else ""
    name = NAMES.get(change.name, f"{change.name.removeprefix('inst_').upper()} instructions")
    return f"{name} {number(change.before)}{unit} -> {number(change.after)}{unit}"


def number(value: float) -> str:
    """Three digits, with k, M, G or T: "285 M"; "n/a" for NaN."""
    if not math.isfinite(value):
        return "n/a"
    for size, letter in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= 0.9995 * size:
            return f"{value / (1e3 if letter == ' k' else size):.3g}{letter}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2g}" if abs(value) < 1 else f"{value:.3g}"
