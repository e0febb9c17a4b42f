"""Computes metrics from the counters of a launch, and from metrics the dominant stall and the occupancy limiter."""

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from warplog.metrics.counters import Capability, alternatives, is_collected, set_of, supports
from warplog.metrics.metric import Metric
from warplog.metrics.registry import METRICS
from warplog.metrics.substitutes import completed

Counters = Mapping[str, float | None]
# Warp states that are no stall; see "Warp Scheduler States" in the Nsight Compute Profiling Guide.
NO_STALL = ("selected", "not_selected")


class Evaluated(NamedTuple):
    """The value of a metric in `unit`; if it is None, `status` is not "ok" and `reason` gives the cause."""

    metric: str
    value: float | None
    unit: str
    status: str
    reason: str


def evaluate(counters: Counters, compute_capability: Capability | None = None) -> list[Evaluated]:
    """Evaluates every metric that campaigns collect with ncu, in registry order.

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
        if metric.formula is not None:
            done[metric.name] = _evaluate(metric, counters, done, capability, notes)
    return list(done.values())


def absent(status: str, reason: str) -> list[Evaluated]:
    """Returns every metric that `evaluate` returns, without a value: the counters were not collected."""
    return [
        Evaluated(m.name, None, m.unit, status, reason)
        for m in METRICS.values()
        if m.formula is not None and is_collected(m)
    ]


def dominant_stall(rows: Iterable[Mapping[str, Any]]) -> str | None:
    """Returns the stall in which warps spend most cycles, such as "long_scoreboard"; None if no stall is known.

    `rows` are metric rows of one launch (`metric` and `value`). The states in NO_STALL are no stalls: in
    `selected` the warp issues, in `not_selected` it is ready to issue.
    """
    return _longest({state: share for state, share in _states(rows).items() if state not in NO_STALL})


def dominant_state(rows: Iterable[Mapping[str, Any]]) -> str | None:
    """Returns the state in which warps spend most cycles without issuing: a stall, or `not_selected`.

    Arguments as for `dominant_stall`.
    """
    return _longest({state: share for state, share in _states(rows).items() if state != "selected"})


def _states(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    return {
        str(row["metric"]).removeprefix("stall_").removesuffix("_pct"): float(row["value"])
        for row in rows
        if str(row["metric"]).startswith("stall_")
        and str(row["metric"]).endswith("_pct")
        and _known(row["value"])
    }


def _longest(shares: Mapping[str, float]) -> str | None:
    longest = max(shares, key=shares.__getitem__, default=None)
    return longest if longest is not None and shares[longest] > 0 else None


def occupancy_limiter(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Returns the resources that allow the fewest blocks per SM, such as ("registers",); several if they tie.

    Empty if the rows of the launch contain no limit.
    """
    limits = {
        str(row["metric"]).removeprefix("occupancy_limit_").removesuffix("_blocks"): float(row["value"])
        for row in rows
        if str(row["metric"]).startswith("occupancy_limit_") and _known(row["value"])
    }
    return tuple(name for name, limit in limits.items() if limit == min(limits.values()))


def _known(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


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
        found = _input(slot.rstrip("?"), counters, done, capability, notes)
        if isinstance(found, str) and not slot.endswith("?"):
            return Evaluated(metric.name, None, metric.unit, "missing", found)
        inputs.append(None if isinstance(found, str) else found)
    value = metric.formula(*inputs)
    if isinstance(value, str):
        return Evaluated(metric.name, None, metric.unit, "missing", value)
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
    listed = " or ".join(names)
    if capability is not None and not any(supports(name, capability) for name in names):
        return f"a GPU of compute capability {capability[0]}.{capability[1]} has no counter {listed}"
    smallest = set_of(names[0])
    hint = "" if smallest == "lean" else f" (the metric set `{smallest}` collects it)"
    return notes.get(listed, f"counter {listed} is not in the report") + hint
