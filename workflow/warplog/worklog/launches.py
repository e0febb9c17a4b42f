"""Kernel launches in the reports that `warplog extract` reads: what bounds each, as a table and in Markdown."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from warplog.analysis import bounds
from warplog.core.columns import Cell
from warplog.core.text import Table, escape_markdown, markdown_table
from warplog.metrics import dominant_stall, occupancy_limiter
from warplog.metrics.banks import no_more_than_l1
from warplog.metrics.kernels import short_name
from warplog.tables.conclusions import Bound
from warplog.worklog.cells import NOT_KNOWN, shown
from warplog.worklog.texts import words

if TYPE_CHECKING:
    import pandas as pd

_KEY = ("source", "tool", "gpu", "cc", "kernel", "launch")
_DURATIONS = ("duration_us", "nsys_kernel_duration_us", "nsys_duration_us")
_LAUNCHES = ("nsys_launches", "ncu_launches")
_SHOWN = (
    "theoretical_occupancy_pct",
    "achieved_occupancy_pct",
    "registers_per_thread",
    "shared_bank_conflicts",
    "shared_wavefronts_excess",
    "shared_conflict_ways",
)
Values = Mapping[str, float]


def summary(table: "pd.DataFrame") -> "pd.DataFrame":
    """Returns one row per launch of a table of `warplog extract`, in its order.

    The columns are source, tool, gpu, cc, kernel and launch; duration_us, launches and total_us (the last two for
    traces of nsys); `bound` (memory, compute, latency or launch), the closest ceiling and how much of it is used; the
    dominant stall and its share; the occupancy and its limiter; and the bank conflicts, no more than
    L1 had wavefronts for. What a report lacks is empty or NaN.
    """
    import pandas as pd

    rows = [dict(zip(_KEY, key, strict=True)) | _row(values) for key, values in _launches(table)]
    return pd.DataFrame(rows)


def markdown(table: "pd.DataFrame") -> str:
    """Returns Markdown with what bounds each kernel launch of a table of `warplog extract`, per report."""
    sections: dict[str, list[Bound]] = {}
    for (source, _, gpu, cc, kernel, launch), values in _launches(table):
        about = ", ".join(filter(None, (str(gpu), f"compute capability {cc}" if cc else "")))
        title = f"{source} ({about})" if about else str(source)
        name = f"{launch} {short_name(str(kernel))}"
        time = next((values[metric] for metric in _DURATIONS if metric in values), math.nan)
        label = name if math.isnan(time) else f"{name}, {shown(time, 'us')}"
        sections.setdefault(title, []).append(bounds.bound(label, values, math.nan))
    return "\n".join(line for title, each in sections.items() for line in _section(title, each)) + "\n"


def _section(title: str, bounds: Sequence[Bound]) -> Iterator[str]:
    yield from (f"# {escape_markdown(title)}: what bounds each launch", "")
    titles = ("launch", "bound by", "closest ceiling", "used", "main stall", "occupancy", "limited by")
    yield from markdown_table(Table(titles, tuple(map(_cells, bounds)), frozenset({3})))
    yield ""


def _cells(bound: Bound) -> tuple[str, ...]:
    macros = words(str)
    if bound.gap:
        return (bound.variant, macros.GAPS[bound.gap], "", "", "", "", "")
    return (
        bound.variant,
        bound.kind,
        macros.UNITS[bound.ceiling],
        shown(bound.ceiling_pct, "%"),
        f"{bound.stall} {shown(bound.stall_pct, '%')}" if bound.stall else NOT_KNOWN,
        f"{shown(bound.achieved_pct, '%')} of {shown(bound.theoretical_pct, '%')}",
        ", ".join(macros.LIMITERS[name] for name in bound.limiters.split(",") if name) or NOT_KNOWN,
    )


def _launches(table: "pd.DataFrame") -> list[tuple[tuple[Cell, ...], dict[str, float]]]:
    """Returns the launches with their metrics that have a value."""
    launches: dict[tuple[Cell, ...], dict[str, float]] = {}
    columns = (table[name].tolist() for name in (*_KEY, "metric", "value"))
    for *key, metric, value in zip(*columns, strict=True):
        values = launches.setdefault(tuple(key), {})
        if not math.isnan(value):
            values[metric] = value
    return list(launches.items())


def _row(values: Values) -> dict[str, Cell]:
    def first(names: Sequence[str]) -> float:
        return next((values[name] for name in names if name in values), math.nan)

    bound = bounds.bound("", values, math.nan)
    stall = dominant_stall(values) or ""
    return {
        "duration_us": first(_DURATIONS),
        "launches": first(_LAUNCHES),
        "total_us": first(("nsys_total_us",)),
        "bound": bound.kind,
        "ceiling": words(str).UNITS.get(bound.ceiling, ""),
        "ceiling_pct": bound.ceiling_pct,
        "stall": stall,
        "stall_pct": first((f"stall_{stall}_pct",)),
        "occupancy_limiter": ", ".join(occupancy_limiter(values)),
        **{name: first((name,)) for name in _SHOWN},
        **{name: count for name, count in no_more_than_l1(values).items() if name in _SHOWN},
    }
