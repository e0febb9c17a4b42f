"""The story of a ladder: its main path from the first step to the fastest variant, and the detours beside it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from warplog.analysis import verdicts
from warplog.analysis.decomposition import Change, Step
from warplog.analysis.kinship import faster_ancestor, time_us
from warplog.analysis.paths import main_path
from warplog.core.columns import Row, text
from warplog.core.text import Table
from warplog.worklog.sentences import (
    UNITS,
    main_causes,
    main_factors,
    main_states,
    name_of,
    state_name,
    state_span,
    times_text,
    value_text,
)

_MOST_COUNTERS = 3
SAME_KERNEL = "same kernel"


@dataclass(frozen=True)
class Detour:
    """A variant beside the main path: how it compares with the step of the path from which it descends.

    `verdict` is "faster", "slower", "tied" (within noise), or its status if it has no time.
    """

    name: str
    step: str
    ratio: str
    verdict: str


@dataclass(frozen=True)
class PathStep:
    """A step of the main path.

    Attributes:
        ratio: Speed over that of the step before; "" for the first step.
        beyond: The same over a faster ancestor, if the step before is slower than that: "3.22x over shuffle"; or "".
        tied: Whether that is within noise, or the kernel is the same.
        speed: Speed at the headline case, with its unit.
        start, end: Where its bar begins and ends: from 0 to 1 on a logarithmic axis of speed.
        detours: The variants that branch off here and do not lead to the fastest one.
    """

    name: str
    ratio: str
    tied: bool
    speed: str
    start: float
    end: float
    detours: tuple[Detour, ...]
    beyond: str = ""

    @property
    def is_tied(self) -> bool:
        """Whether it is another kernel than that of the step before, and as fast within noise."""
        return self.tied and self.ratio != SAME_KERNEL

    @property
    def is_slower(self) -> bool:
        """Whether its bar runs backwards."""
        return self.end < self.start


@dataclass(frozen=True)
class Waterfall:
    """The main path as a waterfall on a logarithmic axis; `baseline` is where the baseline lies, None without one."""

    steps: tuple[PathStep, ...]
    baseline: float | None
    baseline_name: str
    ticks: tuple[tuple[float, str], ...]


def waterfall(
    rows: Mapping[str, Row],
    speeds: Mapping[str, str],
    relative: str = "",
    best: str = "",
    alike: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Waterfall | None:
    """Returns the waterfall of the main path; None if that has fewer than three steps.

    Args:
        rows: The rows of the ladder at the headline case, by variant, in its order.
        speeds: The speed of each variant as text.
        relative: The baseline; "" if there is none.
        best: The last step; the fastest variant by default.
        alike: For each variant, those that launch the same kernel; without an entry if no other one does.
    """
    path = main_path(rows, best)
    if len(path) < 3:
        return None
    rates = {name: 1 / time_us(row) for name, row in rows.items() if time_us(row) > 0}
    shown = [*path, *([relative] if relative in rates else [])]
    low, high = (
        math.log10(limit)
        for limit in (min(map(rates.__getitem__, shown)), max(map(rates.__getitem__, shown)))
    )
    low, high = low - 0.04 * (high - low), high + 0.02 * (high - low)

    def place(name: str) -> float:
        return (math.log10(rates[name]) - low) / (high - low)

    beside = _beside(rows, path, alike)
    steps = []
    for number, name in enumerate(path):
        before = path[number - 1] if number else ""
        ratio = times_text(rates[name] / rates[before]) if before else ""
        tied = bool(before) and verdicts.tied(rows[name], rows[before])
        if before in alike.get(name, ()):
            ratio, tied = SAME_KERNEL, True
        start = place(before or name)
        above = faster_ancestor(rows, name) if before else ""
        beyond = f"{times_text(rates[name] / rates[above])} over {above}" if above else ""
        steps.append(PathStep(name, ratio, tied, speeds[name], start, place(name), beside[name], beyond))
    base = place(relative) if relative in rates else None
    return Waterfall(
        tuple(steps), base, relative, _ticks(low, high, rates[path[-1]], relative and rates.get(relative))
    )


def path_table(fall: Waterfall) -> Table:
    """Returns the steps of the main path with their speed, the gain over the previous step, and detours if any."""
    rows = []
    for step in fall.steps:
        beside = ", ".join(f"{one.name} {one.ratio or one.verdict}".strip() for one in step.detours)
        notes = ", ".join(filter(None, ("tied" if step.is_tied else "", step.beyond)))
        rows.append((step.name, step.speed, step.ratio + (f" ({notes})" if notes else ""), beside))
    titles = ("main path", "speed", "over the previous step", "detours, over this step")
    kept = len(titles) if any(row[-1] for row in rows) else len(titles) - 1
    return Table(titles[:kept], tuple(row[:kept] for row in rows), frozenset({1, 2}))


def counters(step: Step | None) -> tuple[tuple[str, str, str], ...]:
    """Returns the two or three counters that explain a step as (name, before, after).

    They are what the sentences tell first (parallelism, a unit at the same traffic, or the factor that weighs most in
    the direction of the step), what changed along with the largest warp state in that direction, and that state. Empty
    if the counters do not explain the step.
    """
    if step is None or step.gap or math.isnan(step.ratio) or not step.explicable:
        return ()
    found: list[Change] = main_causes(step)
    if step.use.idle and not found:  # then the busiest unit sets the time
        found += [*step.use.traffic[:1], *step.use.units[:1]]
    for factor in main_factors(step):
        if (factor.factor > 1) == (step.ratio > 1) and not found:
            found += [*factor.evidence[:1], factor.change] if factor.evidence else [factor.change]
    shown = {change.name: _shown(change) for change in found}
    for state in main_states(step)[:1]:
        shown |= {change.name: _shown(change) for change in state.evidence[:1]}
        before, after = state_span(state, step).split(" → ")
        unit = after.rpartition(" ")[2]
        shown[state.name] = (state_name(state.name), f"{before} {unit}", after)
    return tuple(list(shown.values())[:_MOST_COUNTERS])


def _shown(change: Change) -> tuple[str, str, str]:
    before, after = (value_text(change.name, value) for value in (change.before, change.after))
    return UNITS.get(change.name, name_of(change)), before, after


def _beside(
    rows: Mapping[str, Row], path: Sequence[str], alike: Mapping[str, Sequence[str]]
) -> dict[str, tuple[Detour, ...]]:
    """Returns the variants beside the path, by the step of the path that they descend from."""
    beside: dict[str, list[Detour]] = {name: [] for name in path}
    for name, row in rows.items():
        if name in beside or row["is_baseline"]:
            continue
        root, seen = text(row, "parent"), {name}
        while root not in beside and root in rows and root not in seen:
            seen.add(root)
            root = text(rows[root], "parent")
        if root in beside:
            same = root in alike.get(name, ())
            beside[root].append(
                Detour(name, root, "", SAME_KERNEL) if same else _detour(name, row, root, rows[root])
            )
    return {name: tuple(found) for name, found in beside.items()}


def _detour(name: str, row: Row, step: str, origin: Row) -> Detour:
    if row["status"] != "ok":
        return Detour(name, step, "", str(row["status"]).replace("_", " "))
    if not (time_us(row) > 0 and time_us(origin) > 0):
        return Detour(name, step, "", "")
    ratio = time_us(origin) / time_us(row)
    verdict = "tied" if verdicts.tied(row, origin) else "faster" if ratio > 1 else "slower"
    return Detour(name, step, times_text(ratio), verdict)


def _ticks(
    low: float, high: float, best: float, baseline: float | str | None
) -> tuple[tuple[float, str], ...]:
    """Returns ticks at 1, 2 and 5 times powers of ten of the percentage of the baseline, or of the fastest variant."""
    whole = baseline if isinstance(baseline, float) else best
    marks = [digit * 10.0**power for power in range(-3, 3) for digit in (1, 2, 5)]
    places = ((math.log10(mark * whole / 100) - low) / (high - low) for mark in marks)
    shown = [(place, f"{mark:g} %") for place, mark in zip(places, marks, strict=True) if 0 <= place <= 1]
    return tuple(shown if len(shown) < 9 else [tick for tick in shown if tick[1][0] == "1"])
