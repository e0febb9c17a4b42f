"""What steps and bounds are made of, as tables."""

import math
from collections.abc import Iterable

from warplog.core.numbers import short_number
from warplog.core.text import Table
from warplog.worklog.bounds import Bound
from warplog.worklog.decomposition import Change, Step
from warplog.worklog.sentences import name_of, share_text

_KEY = ("variant", "parent")
_FACTORS = ("what", "before", "after", "factor")
_STATES = ("state", "saved", "before", "after", "moved with it")
FACTOR_NOTES = (
    "A factor above 1 makes the variant faster; all of them and the remainder multiply to the ratio of times.",
    "They are an account, not causes: where fewer warps are active, each of them also has its turn sooner.",
)
STATE_NOTES = (
    "Cycles that a warp spends in a state for each instruction it issues, and what share of the parent's"
    " elapsed cycles the state no longer costs; below zero it costs more.",
    "selected is the issue itself, not_selected a warp that could have issued.",
)


def factor_table(steps: Iterable[Step], key: bool = True) -> Table:
    """The ratio of each step, its factors and the remainder; with `key`, each row names variant and parent."""
    rows = [(step, row) for step in steps for row in _factors(step)]
    return _keyed(rows, _FACTORS, frozenset({1, 2, 3}), FACTOR_NOTES, key)


def state_table(steps: Iterable[Step], key: bool = True) -> Table:
    """The warp states of each step with the cycles they save, and the counters that moved with them."""
    found = [(step, state) for step in steps for state in step.states]
    rows: list[tuple[Step, tuple[str, ...]]] = []
    for step, state in found:
        proof = "; ".join(f"{_told(c)[0]} {_told(c)[1]} → {_told(c)[2]}" for c in state.evidence)
        sign = "−" if state.share < 0 else ""
        _, before, after = _told(state.change)
        rows.append((step, (state.change.name, sign + share_text(state.share), before, after, proof)))
    bars = () if key else tuple(max(-1.0, min(1.0, state.share)) for _, state in found)
    return _keyed(rows, _STATES, frozenset({1, 2, 3}), STATE_NOTES, key, bars)


def bound_table(bounds: Iterable[Bound]) -> Table:
    """What bounds each variant, its longest state and its occupancy."""
    titles = ("variant", "bound by", "nearest ceiling", "used", "longest state", "occupancy", "limited by")
    return Table(titles, tuple(_bound(one) for one in bounds), frozenset({3}))


def _keyed(
    rows: list[tuple[Step, tuple[str, ...]]],
    titles: tuple[str, ...],
    numeric: frozenset[int],
    notes: tuple[str, ...],
    key: bool,
    bars: tuple[float, ...] = (),
) -> Table:
    if not key:
        return Table(titles, tuple(row for _, row in rows), numeric, notes, bars)
    keyed = tuple((step.variant, step.parent, *row) for step, row in rows)
    return Table((*_KEY, *titles), keyed, frozenset(column + 2 for column in numeric), notes, bars)


def _factors(step: Step) -> list[tuple[str, ...]]:
    if step.gap:
        ratio = [] if math.isnan(step.ratio) else [("time", "", "", f"{step.ratio:.3f}")]
        return [*ratio, (step.gap, "", "", "")]
    rows = [("time", "", "", f"{step.ratio:.3f}")]
    rows += [(*_told(factor.change), f"{factor.factor:.3f}") for factor in step.factors]
    return [*rows, ("remainder", "", "", f"{step.remainder:.3f}")]


def _told(change: Change) -> tuple[str, str, str]:
    unit = ", %" if change.name.endswith("_pct") else ", MHz" if change.name.endswith("_mhz") else ""
    return name_of(change) + unit, short_number(change.before), short_number(change.after)


def _bound(one: Bound) -> tuple[str, ...]:
    if one.gap:
        return (one.variant, one.gap, "", "", "", "", "")
    wait = f"{one.stall} {short_number(one.stall_pct)} %" if one.stall else "n/a"
    occupancy = f"{short_number(one.achieved_pct)} of {short_number(one.theoretical_pct)} %"
    limits = ", ".join(name.replace("_", " ") for name in one.limiters) or "n/a"
    return (one.variant, one.kind, one.ceiling, f"{short_number(one.ceiling_pct)} %", wait, occupancy, limits)
