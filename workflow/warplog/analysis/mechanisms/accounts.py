"""Accounts for a measured gain afterwards, by where warps no longer wait: what work counts cannot predict.

The time that warps spend in a state, before and after, follows from counters of both kernels (table `changes`). It is a
mechanism only if something else changed along with it: the number of fences with the wait for them, the place of loads
in a loop with the wait for memory, accesses to shared memory by generic addresses with the wait for their queue, the
stores that stay in flight with the wait for them. Otherwise a wait is as short as the time that it is part of. Nor does
it save more than what changed can take.

A wait may hide others, which then are shorter. If it alone became longer, all that was lost is due to it.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from warplog.analysis.mechanisms.units import SCHEDULERS
from warplog.analysis.mechanisms.work import Work
from warplog.catalog.contract import Mechanism
from warplog.core.columns import Row, number, text

# Share of the time in which the tensor cores wait for the end of a tile, of parent and child; NaN if not recorded.
Bubbles = tuple[float, float]


@dataclass(frozen=True)
class Account:
    """A mechanism, the time that it saved, and the columns and metrics that this rests on."""

    mechanism: Mechanism
    saved_us: float
    rests_on: tuple[str, ...]


# What a wait shows if it changes along with a count of work.
_ALONG: Mapping[str, tuple[Mechanism, Mapping[str, Callable[[Work], float]]]] = {
    "membar": ("fences", {"inst_membar": lambda work: work.fences}),
    # Waits at mbarriers take the place of those at barriers.
    "barrier": (
        "barriers",
        {
            "inst_bar": lambda work: work.barriers / work.warps,
            "inst_syncs": lambda work: work.arrivals / work.warps,
        },
    ),
}
_MOSTLY = 0.5
_HARDLY = 0.1
_ALIKE = 0.05  # of loads
_HIDES: Mapping[Mechanism, tuple[str, ...]] = {
    "loads_in_flight": ("instructions/text",),
    "occupancy": ("occupancy_limit_registers_blocks", "occupancy_limit_shared_memory_blocks"),
}
_PORTS, BUBBLE, _OTHERS = "sass_steps/bank_conflicts", "launches/bubble_pct", "steps/others_us"
_GENERIC = ("accesses/space", "instructions/text")
_STORES = ("instructions/samples", "instructions/text")


def accounts(
    before: Work,
    after: Work,
    parent_us: float,
    child_us: float,
    changes: Sequence[Row],
    bubbles: Bubbles,
    others_us: float = math.nan,
) -> Iterator[Account]:
    """Yields what accounts for a part of a step.

    Args:
        before, after: the work of the longest kernels.
        parent_us, child_us: the measured times.
        others_us: what kernels beside these saved; NaN if there are none, or if they were not timed.
        changes: the rows of this table about the step.
    """
    yield from _by_states(before, after, changes)
    waits = before.store_waits * parent_us - after.store_waits * child_us
    if (after.stores_left - before.stores_left) * waits > 0:
        yield Account("store_overlap", waits, _STORES)
    if not math.isnan(sum(bubbles)):
        yield Account("store_overlap", (bubbles[0] - bubbles[1]) / 100 * parent_us, (BUBBLE,))
    if not math.isnan(others_us):
        yield Account("launches", others_us, (_OTHERS,))


def best(found: Iterable[Account], measured_us: float, error: float) -> Account | None:
    """Returns the account that comes nearest to a measured saving; None if none is within `error`, a share of it."""
    nearest = min(found, key=lambda account: abs(account.saved_us - measured_us), default=None)
    if nearest is None or abs(nearest.saved_us - measured_us) > error * abs(measured_us):
        return None
    return nearest


def _by_states(before: Work, after: Work, changes: Sequence[Row]) -> Iterator[Account]:
    of_states = [row for row in changes if row["kind"] == "state"]
    states = {text(row, "quantity"): number(row, "saved_us") for row in of_states}
    for row in of_states:
        state, saved_us = text(row, "quantity"), number(row, "saved_us")
        column = f"changes/{state}"
        if state in _ALONG:
            mechanism, counts = _ALONG[state]
            fewer = {counter: count(before) - count(after) for counter, count in counts.items()}
            if sum(fewer.values()) * saved_us > 0:
                moved = (counter for counter, change in fewer.items() if change * saved_us > 0)
                few, many = sorted(sum(count(work) for count in counts.values()) for work in (before, after))
                longest_us = max(number(row, "before"), number(row, "after"))
                part = min(1.0, longest_us * (1 - few / many) / abs(saved_us))
                yield Account(mechanism, part * _net(state, states), (column, *moved))
        if state == "long_scoreboard" and (hidden := _hidden(before, after, saved_us)):
            yield Account(hidden, saved_us, (column, *_HIDES[hidden]))
        if state == "long_scoreboard" and _overlap(before) * _overlap(after) < 0:
            waits = number(row, "before") * _left(before, after) - number(row, "after") * _left(after, before)
            if (_overlap(after) - _overlap(before)) * waits > 0:
                yield Account("load_overlap", waits, (column, "instructions/text"))
        elif state == "lg_throttle" and (before.generic - after.generic) * saved_us > 0:
            yield Account("shared_accesses", saved_us, (column, *_GENERIC))
        elif state == "dispatch_stall" and (ports_us := _at_ports(before) - _at_ports(after)) * saved_us > 0:
            yield Account("register_ports", min(saved_us, ports_us, key=abs), (column, _PORTS))


def _net(state: str, states: Mapping[str, float]) -> float:
    """Returns what a wait saved, less what those save that it hides, if others hardly changed in its direction."""
    saved_us, whole = states[state], sum(states.values())
    along_us = sum(other for name, other in states.items() if name != state and other * saved_us > 0)
    alone = abs(along_us) <= _HARDLY * abs(saved_us)
    return whole if alone and whole * saved_us > 0 else saved_us


def _hidden(before: Work, after: Work, saved_us: float) -> Mechanism | None:
    """Returns what hides waits for loads more or less than before: loads in flight, or warps.

    None if an SM has not more loads in flight for a saving, or fewer for a loss, or if there are fewer loads to wait
    for with a saving, or more with a loss.
    """
    more_loads = after.loads - before.loads
    if not before.loads or math.copysign(more_loads, saved_us * more_loads) < -_ALIKE * before.loads:
        return None
    if not before.in_flight or not after.in_flight:
        return None
    more: dict[Mechanism, float] = {
        "loads_in_flight": math.log(after.in_flight / before.in_flight),
        "occupancy": math.log(after.block_warps * after.resident / before.block_warps / before.resident),
    }
    if sum(more.values()) * saved_us <= 0:
        return None
    return max(more.items(), key=lambda item: item[1] * saved_us)[0]


def _overlap(work: Work) -> float:
    """Returns a positive number if a loop computes mostly while it loads, and a negative one if it does so rarely."""
    return work.overlapped - _MOSTLY


def _left(before: Work, after: Work) -> float:
    """Returns the share of loads that is left: those that are gone need not wait, wherever they were."""
    is_alike = before.loads and after.loads and not before.copies and not after.copies
    return min(1.0, after.loads / before.loads) if is_alike else 1.0


def _at_ports(work: Work) -> float:
    """Returns how long the schedulers of an SM wait for registers in one bank, in microseconds."""
    return work.port_conflicts / (SCHEDULERS * work.sms * work.mhz)
