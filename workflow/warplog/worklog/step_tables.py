"""Tables of the factors and warp states of steps, and of what bounds each variant."""

import math
from collections.abc import Iterable

from warplog.analysis.bounds import Bound
from warplog.analysis.decomposition import Change, StateChange, Step
from warplog.core.numbers import short_number
from warplog.core.text import Table
from warplog.worklog.sentences import UNITS, bound_gap_text, gap_text, name_of, state_name, value_text

_KEY = ("variant", "parent")
_FACTORS = ("quantity", "before", "after", "factor")
_STATES = ("state", "saved, µs", "before, µs", "after, µs", "changed along with it")
_DIGITS, _MOST_DECIMALS = 4, 2
FACTOR_NOTES = (
    "Each variant is compared with its parent, the variant that it is based on. A factor above 1 makes the variant"
    " faster than its parent. The product of all factors and the remainder is the ratio of the two speeds.",
    "An instruction counts once for each warp that executes it. Instructions per cycle are those that an SM executes in"
    " a cycle in which it has active warps. SM activity is the share of the kernel's cycles in which an SM has active"
    " warps, averaged over the SMs. The mean SM clock is that during the timed launches.",
    "Factors account for the time; they are not independent causes. The remainder is what other kernels of the"
    " launch add, and the difference between the launches that were profiled and those that were timed.",
)
EXPECTED_NOTE = (
    'Expectations: "about" means within 5 % of the expected value; "within noise" means that the spread between'
    " processes does not exclude it."
)
STATE_NOTES = (
    "Warp states: the time of a kernel under ncu is divided among the states in proportion to the cycles that all its"
    " warps spend in each. Saved is the parent's time in a state minus the variant's (negative: the state costs more)."
    " The waits of all warps count, even those of warps that delay nothing, such as a producer that is ahead.",
    "Issuing or ready sums the states selected (a warp issues) and not_selected (it is ready while another warp"
    " issues). They are not stalls, but fewer instructions shorten them too.",
)
BOUND_NOTE = (
    "A kernel is bound by a unit that runs at 90 % of its peak or more. For device memory 80 % is enough, since"
    " refreshes and changes between reads and writes keep its peak out of reach. If no unit reaches 60 %, latency is"
    " the likely bound."
)
KEPT_NOTE = (
    "A kernel that moves less than the compulsory traffic presumably leaves results in L2 when it ends."
)
# States whose names do not say what a warp waits for (Nsight Compute, Kernel Profiling Guide, "Warp Stall Reasons").
_MEANINGS = {
    "barrier": "other warps have not arrived at a barrier, or asynchronous products on tensor cores (sm_90) are not"
    " complete",
    "branch_resolving": "the target of a branch is not yet computed",
    "dispatch_stall": "the dispatcher holds back an instruction that is ready, because of a conflict",
    "drain": "a warp has ended, and its stores are still on their way to memory",
    "imc_miss": "a constant is not in the constant cache",
    "long_scoreboard": "the result of an access to global, local or texture memory, or of a wait at an mbarrier, has"
    " not arrived",
    "short_scoreboard": "the result of shared memory or a special function has not arrived",
    "math_pipe_throttle": "the pipe that the instruction needs is busy",
    "wait": "the fixed latency of the instruction before has not passed",
    "lg_throttle": "the queue of global and local accesses is full",
    "mio_throttle": "the queue of shared-memory and special instructions is full",
    "no_instruction": "the next instruction is not yet fetched",
    "gmma": "a warp is about to issue wgmma instructions and waits for its warpgroup (warpgroup.arrive)",
    "membar": "a memory fence is not yet complete",
    "misc": "none of the other states",
}


def state_meanings(states: Iterable[str]) -> tuple[str, ...]:
    """Returns a note on those of the states whose names do not say what they are; none if there are none."""
    named = set(states)
    found = [f"{name}: {meaning}" for name, meaning in _MEANINGS.items() if name in named]
    return (f"Names of states: {'; '.join(found)}.",) if found else ()


def factor_table(steps: Iterable[Step], key: bool = True) -> Table:
    """Returns ratio, factors and remainder of each step; with `key`, rows name the variant and its parent."""
    rows = [(step, row) for step in steps for row in _factors(step)]
    return _keyed(rows, _FACTORS, FACTOR_NOTES, key)


def state_table(steps: Iterable[Step], key: bool = True) -> Table:
    """Returns the warp states of each step, the time they save, and the related counters that changed.

    Arguments as for `factor_table`; without `key`, the shares of the parent's time are also drawn as bars.
    """
    found = [(step, state) for step in steps for state in step.states]
    rows: list[tuple[Step, tuple[str, ...]]] = []
    for step, state in found:
        evidence = "; ".join(f"{_cells(c)[0]} {_cells(c)[1]} → {_cells(c)[2]}" for c in state.evidence)
        rows.append((step, (state_name(state.name), *_times(state, step), evidence)))
    bars = () if key else tuple(max(-1.0, min(1.0, state.share)) for _, state in found)
    return _keyed(rows, _STATES, STATE_NOTES, key, bars)


def _times(state: StateChange, step: Step) -> tuple[str, str, str]:
    """Returns the time that a state saves, and that before and after, with as many digits for each state of a step."""
    longest = max(step.kernel_us)
    decimals = (
        max(0, min(_MOST_DECIMALS, _DIGITS - 1 - math.floor(math.log10(longest)))) if longest > 0 else 0
    )
    before, after = (round(share * step.kernel_us[0], decimals) for share in (state.before, state.after))
    saved, *ends = (f"{us:.{decimals}f}" for us in (before - after, before, after))
    return saved.replace("-", "−"), ends[0], ends[1]


def bound_table(bounds: Iterable[Bound]) -> Table:
    """Returns what bounds each variant, its main stall, and its occupancy."""
    titles = ("variant", "bound by", "closest ceiling", "used", "main stall", "occupancy", "limited by")
    return Table(titles, tuple(_bound(one) for one in bounds), frozenset({3}))


def _keyed(
    rows: list[tuple[Step, tuple[str, ...]]],
    titles: tuple[str, ...],
    notes: tuple[str, ...],
    key: bool,
    bars: tuple[float, ...] = (),
) -> Table:
    if not key:
        return Table(titles, tuple(row for _, row in rows), frozenset({1, 2, 3}), notes, bars)
    keyed = tuple((step.variant, step.parent, *row) for step, row in rows)
    return Table((*_KEY, *titles), keyed, frozenset({3, 4, 5}), notes, bars)


def _factors(step: Step) -> list[tuple[str, ...]]:
    if step.gap:
        ratio = [] if math.isnan(step.ratio) else [("speed", "", "", f"{step.ratio:.3f}")]
        return [*ratio, (gap_text(step), "", "", "")]
    rows = [("speed", "", "", f"{step.ratio:.3f}")]
    rows += [(*_cells(factor.change), f"{factor.factor:.3f}") for factor in step.factors]
    return [*rows, ("remainder", "", "", f"{step.remainder:.3f}")]


def _cells(change: Change) -> tuple[str, str, str]:
    """Returns the name with its unit, and the values before and after."""
    unit = ", %" if change.name.endswith("_pct") else ", MHz" if change.name.endswith("_mhz") else ""
    before, after = (value_text(change.name, value) for value in (change.before, change.after))
    return name_of(change) + unit, before.removesuffix(unit[1:]), after.removesuffix(unit[1:])


def _bound(one: Bound) -> tuple[str, ...]:
    if one.gap:
        return (one.variant, bound_gap_text(one), "", "", "", "", "")
    wait = f"{one.stall} {short_number(one.stall_pct)} %" if one.stall else "n/a"
    occupancy = f"{short_number(one.achieved_pct)} of {short_number(one.theoretical_pct)} %"
    limits = ", ".join(name.replace("_", " ") for name in one.limiters) or "n/a"
    limit = one.long_run.limited_by if one.long_run else ""
    kind = f"{one.kind}; {limit} when {one.long_run.regime}" if one.long_run and limit else one.kind
    return (
        one.variant,
        kind,
        UNITS[one.ceiling],
        f"{short_number(one.ceiling_pct)} %",
        wait,
        occupancy,
        limits,
    )
