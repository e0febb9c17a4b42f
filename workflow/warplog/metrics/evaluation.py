"""Computes metrics from the counters of a launch, and from metrics the dominant stall and the occupancy limiter."""

import math
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from warplog.core.columns import Row
from warplog.metrics.counters import RENAMED, Capability, alternatives, is_collected, is_of, set_of, supports
from warplog.metrics.metric import Metric
from warplog.metrics.registry import METRICS
from warplog.metrics.substitutes import Counters, completed
from warplog.records.fields import Status

# Warp states that are no stall; see "Warp Scheduler States" in the Nsight Compute Profiling Guide.
NO_STALL = ("selected", "not_selected")


class Evaluated(NamedTuple):
    """The value of a metric in `unit`; if it is None, `status` is not "ok" and `reason` gives the cause."""

    metric: str
    value: float | None
    unit: str
    status: Status
    reason: str


def evaluate(counters: Counters, compute_capability: Capability | None = None) -> list[Evaluated]:
    """Evaluates every metric that campaigns collect with ncu, in registry order; of tensor memory if the GPU has it.

    If a counter is absent, has no value or is NaN, negative or infinite, the metric is "missing" and the reason names
    the counter; it is never treated as zero.
    """
    return _evaluated(filter(is_collected, METRICS.values()), counters, compute_capability)


def evaluate_any(
    counters: Counters,
    compute_capability: Capability | None = None,
    notes: Mapping[str, str] = MappingProxyType({}),
) -> list[Evaluated]:
    """Evaluates every metric on a report that may be of any origin, like `evaluate`.

    This includes metrics that campaigns do not collect. Some counters that the report lacks are computed from others
    (see `substitutes.completed`). `notes` say why the report has no value for a counter, if more is known of it.
    """
    return _evaluated(METRICS.values(), completed(counters, compute_capability), compute_capability, notes)


def _evaluated(
    metrics: Iterable[Metric],
    counters: Counters,
    capability: Capability | None,
    notes: Mapping[str, str] = MappingProxyType({}),
) -> list[Evaluated]:
    done: dict[str, Evaluated] = {}
    for metric in metrics:
        if metric.formula is not None and is_of(metric, capability):
            done[metric.name] = _evaluate(metric, counters, done, capability, notes)
    return list(done.values())


def absent(status: Status, reason: str) -> list[Evaluated]:
    """Returns every metric that `evaluate` returns on any GPU, without a value: the counters were not collected."""
    return [
        Evaluated(m.name, None, m.unit, status, reason)
        for m in METRICS.values()
        if m.formula is not None and is_collected(m) and is_of(m, None)
    ]


def dominant_stall(values: Row) -> str | None:
    """Returns the stall in which warps spend most cycles, such as "long_scoreboard"; None if no stall is known.

    `values` are those of one launch by metric. The states in NO_STALL are no stalls: in `selected` the warp issues, in
    `not_selected` it is ready to issue.
    """
    return _longest(values, NO_STALL)


def dominant_state(values: Row) -> str | None:
    """Returns the state in which warps spend most cycles without issuing: a stall, or `not_selected`.

    Arguments as for `dominant_stall`.
    """
    return _longest(values, ("selected",))


def _longest(values: Row, without: Collection[str]) -> str | None:
    shares = {name: share for name, share in _named(values, "stall_", "_pct").items() if name not in without}
    longest = max(shares, key=shares.__getitem__, default=None)
    return longest if longest is not None and shares[longest] > 0 else None


def occupancy_limiter(values: Row) -> tuple[str, ...]:
    """Returns the resources that allow the fewest blocks per SM, such as ("registers",); several if they tie.

    Empty if the values of the launch, by metric, contain no limit.
    """
    limits = _named(values, "occupancy_limit_", "_blocks")
    return tuple(name for name, limit in limits.items() if limit == min(limits.values()))


def _named(values: Row, start: str, end: str) -> dict[str, float]:
    """Returns the finite values of the metrics named `start`, a name, `end`, by that name."""
    return {
        metric.removeprefix(start).removesuffix(end): value
        for metric, value in values.items()
        if metric.startswith(start) and metric.endswith(end)
        if isinstance(value, (int, float)) and math.isfinite(value)
    }


def _evaluate(
    metric: Metric,
    counters: Counters,
    done: Mapping[str, Evaluated],
    capability: Capability | None,
    notes: Mapping[str, str],
) -> Evaluated:
    assert metric.formula is not None
    inputs: list[float | None] = []
    for slot in metric.counters:
        counter = _input(slot.rstrip("?~"), counters, done, capability, notes)
        is_optional = slot.endswith("?") or (slot.endswith("~") and _lacking(METRICS[slot[1:-1]], capability))
        if isinstance(counter, str) and not is_optional:
            return Evaluated(metric.name, None, metric.unit, "missing", counter)
        inputs.append(None if isinstance(counter, str) else counter)
    value = metric.formula(*inputs)
    if isinstance(value, str):
        return Evaluated(metric.name, None, metric.unit, "missing", _lacking(metric, capability) or value)
    if not math.isfinite(value):
        return Evaluated(metric.name, None, metric.unit, "missing", "the result is not a finite number")
    return Evaluated(metric.name, value, metric.unit, "ok", "")


def _input(
    slot: str,
    counters: Counters,
    done: Mapping[str, Evaluated],
    capability: Capability | None,
    notes: Mapping[str, str],
) -> float | str:
    if slot.startswith("@"):
        other = done[slot[1:]]
        return other.value if other.value is not None else f"{other.metric}: {other.reason}"
    names = alternatives(slot)
    name = next((n for n in names if n in counters), None)
    if name is None:
        return _why_absent(names, capability, notes)
    value = counters[name]
    if value is not None and ":" in slot:
        value = counters.get(slot) or 0.0
    if value is None:
        return notes.get(name, f"counter {name} has no value")
    if math.isnan(value):
        return f"counter {name} is not a number (NaN)"
    return value if 0 <= value < math.inf else f"counter {name} is {value:g}, which no counter can be"


def _why_absent(names: tuple[str, ...], capability: Capability | None, notes: Mapping[str, str]) -> str:
    if lacking := _no_counter(names, capability):
        return lacking
    listed, smallest = " or ".join(names), set_of(names[0])
    hint = "" if smallest == "lean" else f" (the metric set `{smallest}` collects it)"
    if capability is not None and RENAMED.issuperset(name for name in names if supports(name, capability)):
        hint = (
            " (its name differs between versions of ncu; campaigns collect only the sum of reads and writes)"
        )
    return notes.get(listed, f"counter {listed} is not in the report") + hint


def _lacking(metric: Metric, capability: Capability | None) -> str:
    """Returns that the GPU has none of the counters of the metric; "" otherwise, see `_no_counter`."""
    slots = (slot for slot in metric.counters if not slot.startswith("@"))
    return _no_counter([name for slot in slots for name in alternatives(slot)], capability)


def _no_counter(names: Collection[str], capability: Capability | None) -> str:
    """Returns that the GPU has none of these counters; "" if it has one of them, or is unknown, or none is named."""
    if not names or capability is None or any(supports(name, capability) for name in names):
        return ""
    return f"a GPU of compute capability {capability[0]}.{capability[1]} has no counter {' or '.join(names)}"
