"""What argues for a step, what against it, what only results from it: the rows of the table `changes`.

A cause or cost is something that the code of a variant sets (its grid, accesses, instructions, traffic), or a wait
that the time was spent in. What follows from the time is an effect: the use of a unit, since it is work per time;
instructions per cycle at the same instructions or of a kernel that memory bounds; the clock; and the time in which
warps are ready, unless the instructions changed likewise.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from warplog.analysis.bounds import OF_MEMORY
from warplog.analysis.decomposition import CLOCK, ISSUING, Change, Factor, StateChange, Step
from warplog.analysis.use import BLOCKS, TRAFFIC_OF
from warplog.metrics import METRICS
from warplog.tables import conclusions as rows
from warplog.tables.conclusions import NAN, Bound

CAUSE, COST, EFFECT, DETAIL = ROLES = ("cause", "cost", "effect", "detail")
_UNITS = {"sm_busy_pct": "%", CLOCK: "MHz", BLOCKS: "block", "bubble_us": "us"}  # of what is no metric
# Smallest part of the ratio (log scale) for a factor to be a reason, and share of the parent's time for a state.
_LEAST_FACTOR, _LEAST_STATE, _MOST_STATES = 0.1, 0.02, 2
# A factor nearer to 1 is noise, however small the ratio: the same kernel, profiled again, has 0.969 to 1.034.
_LEAST_CHANGE = 0.98
_NOISE = {"ipc": 0.96, "sm_busy_pct": 0.96}
_LARGE = math.log(3)  # from this ratio on, parallelism accounts for it
_EVEN = math.log(1.05)  # up to which work is the same
_LEAST_GAP = math.log(1.25)  # by which a pipeline bubble changes, to matter
_INSTRUCTIONS, _IPC = "instructions_executed", "ipc"


def changes(step: Step, bounds: Mapping[str, Bound]) -> list[rows.Change]:
    """Returns the rows of a step: causes, then costs, effects and details; each quantity once, in its first role.

    Args:
        step: the step; one that the counters do not explain has details only.
        bounds: what bounds each variant's kernel.
    """
    if step.gap:
        return []
    sides = [bounds[name] for name in (step.parent, step.variant) if name in bounds]
    by_quantity: dict[str, rows.Change] = {}
    for change in sorted(_ordered(step, sides), key=lambda change: ROLES.index(change.role)):
        first = by_quantity.setdefault(change.quantity, change)
        if (
            change.kind == "factor" and first.kind != "factor"
        ):  # a counter of a state before, but it stays a factor
            by_quantity[change.quantity] = replace(change, role=first.role, of=first.of)
    return [replace(change, rank=rank) for rank, change in enumerate(by_quantity.values())]


def _ordered(step: Step, sides: list[Bound]) -> Iterator[rows.Change]:
    """Yields the changes in the order in which those of a role are told; a quantity may occur again."""
    if step.explicable:
        yield from _parallelism(step)
        yield from _factors(step, sides)
        yield from _traffic(step, sides)
        yield from _states(step)
    use = step.use
    yield from (_row(step, EFFECT if step.explicable else DETAIL, "unit", moved) for moved in use.units)
    for kind, changed in (("grid", use.grid or ()), ("sectors", use.sectors), ("traffic", use.traffic)):
        yield from (_row(step, DETAIL, kind, change) for change in changed)
    if use.occupancy:
        yield _row(step, DETAIL, "occupancy", use.occupancy)
    if use.blocks:
        yield _row(step, DETAIL, "blocks", use.blocks)
    if use.tile_end:
        yield _bubble(step, DETAIL)
    for factor in step.factors:
        yield from _factor(step, DETAIL, factor)
    for state in step.states:
        yield from _state(step, DETAIL, state)


def _parallelism(step: Step) -> Iterator[rows.Change]:
    """Yields atomics, grid, accesses and the pipeline's bubble, where they argue for or against the step."""
    before, after = step.use.contended
    if before != after:
        contended = Change("contended_atomics", float(before), float(after))
        yield _row(step, _role(step, before), "atomics", contended)
    if grid := _grid(step):
        yield _row(step, CAUSE, "grid", grid[0])
    yield from (_row(step, CAUSE, "sectors", change) for change in _sectors(step))
    if excess := step.use.excess:
        yield _row(step, _role(step, excess.after < excess.before), "counter", excess)
    if step.use.tile_end:
        _, old, new = step.use.tile_end
        if abs(math.log(new / old)) >= _LEAST_GAP:
            yield _bubble(step, _role(step, new < old))


def _factors(step: Step, sides: list[Bound]) -> Iterator[rows.Change]:
    """Yields the factors that weigh enough, none where atomics or parallelism account for the ratio."""
    if any(step.use.contended) or _grid(step) or _sectors(step):
        return
    by_memory = any(
        bound.kind in ("memory", "near") and {bound.ceiling, bound.ceiling_2} & OF_MEMORY for bound in sides
    )
    for factor in step.factors:
        if _weight(factor, step) < _LEAST_FACTOR or (factor not in step.causes and factor != step.clock):
            continue
        follows = factor.change.name == _IPC and (by_memory or abs(_instructions(step)) <= _EVEN)
        role = EFFECT if follows or factor == step.clock else _role(step, factor.factor > 1)
        yield from _factor(step, role, factor)


def _traffic(step: Step, sides: list[Bound]) -> Iterator[rows.Change]:
    """Yields the traffic of a unit that is a ceiling on either side, and the occupancy of a kernel bound by latency."""
    near = {TRAFFIC_OF.get(name) for bound in sides for name in (bound.ceiling, bound.ceiling_2)}
    for moved in step.use.traffic:
        if moved.name in near:
            yield _row(step, _role(step, moved.after < moved.before), "traffic", moved)
    if occupancy := step.use.occupancy:
        fewer = step.parent if occupancy.before < occupancy.after else step.variant
        if any(bound.variant == fewer and bound.kind == "latency" for bound in sides):
            yield _row(step, _role(step, occupancy.after > occupancy.before), "occupancy", occupancy)


def _states(step: Step) -> Iterator[rows.Change]:
    """Yields the two states that changed most in the step's direction, and the largest one against it."""
    large = [state for state in step.states if abs(state.share) >= _LEAST_STATE]
    for state in large:
        if state.name == ISSUING and not _by_instructions(step, state):
            yield from _state(step, EFFECT, state)
    large = [state for state in large if state.name != ISSUING or _by_instructions(step, state)]
    along = [state for state in large if (state.share > 0) == (step.ratio > 1)]
    for state in along[:_MOST_STATES]:
        yield from _state(step, CAUSE, state)
    for state in [state for state in large if state not in along][: 1 if along else 0]:
        yield from _state(step, COST, state)


def _role(step: Step, saves_time: bool) -> str:
    return CAUSE if saves_time == (step.ratio > 1) else COST


def _grid(step: Step) -> tuple[Change, ...]:
    """Returns blocks and waves of the grid, if the ratio is large and they change in its direction."""
    if step.use.grid is None or abs(math.log(step.ratio)) <= _LARGE:
        return ()
    waves = step.use.grid[1]
    return step.use.grid if (waves.after > waves.before) == (step.ratio > 1) else ()


def _sectors(step: Step) -> list[Change]:
    """Returns sectors per request, if the ratio is large and they change in its direction."""
    large = abs(math.log(step.ratio)) > _LARGE
    return [
        change for change in step.use.sectors if large and (change.after < change.before) == (step.ratio > 1)
    ]


def _weight(factor: Factor, step: Step) -> float:
    """Returns a factor's part of the ratio on a logarithmic scale; 0 for a factor within noise."""
    size = abs(math.log(factor.factor))
    least = -math.log(_NOISE.get(factor.change.name, _LEAST_CHANGE))
    return size / max(abs(math.log(step.ratio)), math.log1p(0.05)) if size >= least else 0.0


def _instructions(step: Step) -> float:
    """Returns the logarithm of the factor that the executed instructions changed by."""
    changed = next((factor.change for factor in step.factors if factor.change.name == _INSTRUCTIONS), None)
    return math.log(changed.after / changed.before) if changed else 0.0


def _by_instructions(step: Step, state: StateChange) -> bool:
    """Returns whether the instructions changed in the direction of the time in which warps issue or are ready.

    Where schedulers are idle, warps that wait execute more of them, since they poll.
    """
    moved = -_instructions(step) if state.share > 0 else _instructions(step)
    return moved > _EVEN and not step.use.idle


def _factor(step: Step, role: str, factor: Factor) -> Iterator[rows.Change]:
    kind = "clock" if factor.change.name == CLOCK else "factor"
    yield _row(step, role, kind, factor.change, factor=factor.factor)
    yield from (_row(step, DETAIL, "counter", counter, of=factor.change.name) for counter in factor.evidence)


def _state(step: Step, role: str, state: StateChange) -> Iterator[rows.Change]:
    us = Change(state.name, state.before * step.kernel_us[0], state.after * step.kernel_us[0])
    waits = [(wait.awaited, wait.line) if wait else ("", "") for wait in (state.wait, state.parents)]
    yield _row(step, role, "state", us, saved_us=us.before - us.after, waits=(*waits[0], *waits[1]))
    yield from (_row(step, DETAIL, "counter", counter, of=state.name) for counter in state.evidence)


def _bubble(step: Step, role: str) -> rows.Change:
    name, before, after = step.use.tile_end or ("", NAN, NAN)
    return _row(
        step, role, "bubble", Change("bubble_us", before, after), of="" if name == step.parent else name
    )


def _row(
    step: Step,
    role: str,
    kind: str,
    moved: Change,
    factor: float = NAN,
    saved_us: float = NAN,
    of: str = "",
    waits: tuple[str, str, str, str] = ("", "", "", ""),
) -> rows.Change:
    unit = (
        "us"
        if kind == "state"
        else METRICS[moved.name].unit
        if moved.name in METRICS
        else _UNITS.get(moved.name, "")
    )
    return rows.Change(
        step.family, step.variant, 0, step.parent, step.case, role, kind, moved.name, moved.before, moved.after,
        unit, factor, saved_us, of, *waits,
    )  # fmt: skip
