"""What the GPU does in the launches that nsys traced: kernels, copies and memsets, and the gaps between them."""

from typing import Any

import numpy as np
import pandas as pd

from warplog.core.columns import Row
from warplog.tables.view import FigureTables

_KINDS = ("kernel", "memcpy", "memset")


def captured_case(tables: FigureTables) -> str:
    """Returns the headline case, or the last profiled case in the trace if nsys did not capture it."""
    seen = set(tables.timeline["case"])
    others = (c for c in reversed(tables.profile_cases) if c in seen)
    return tables.case if tables.case in seen else next(others, tables.case)


def activities(tables: FigureTables) -> dict[str, pd.DataFrame]:
    """Returns the kernels, copies and memsets of each variant at the captured case; start_us counts from the first."""
    rows = tables.timeline
    rows = rows[rows["kind"].isin(_KINDS) & (rows["case"] == captured_case(tables))]
    by_variant = {}
    for name, own in rows.groupby("variant", sort=False):
        own = own.sort_values(["start_us", "stream"], kind="stable")
        by_variant[str(name)] = own.assign(start_us=own["start_us"] - own["start_us"].min())
    return by_variant


def statistics(events: pd.DataFrame) -> Row:
    """Returns what a variant's activities add up to.

    They are their number, the span in us, the share of it in which anything ran, the median and longest gap, the kernel
    that ran longest in total, the share of the span of the activity that ran longest, and the median over the launches
    of the time in which anything ran.
    """
    span, idle = _span_and_gaps(events)
    totals = events.groupby(["kind", "name"])["duration_us"].sum()
    kernels = totals.loc["kernel"] if "kernel" in totals.index else totals.iloc[:0]
    return {
        "events": len(events),
        "span_us": span,
        "busy_pct": 100 * (1 - idle.sum() / span) if span > 0 else np.nan,
        "longest_pct": 100 * float(totals.max()) / span if span > 0 else np.nan,
        "gap_median_us": float(np.median(idle)) if len(idle) else np.nan,
        "gap_max_us": float(idle.max()) if len(idle) else np.nan,
        "kernel": str(kernels.idxmax()) if len(kernels) else "",
        "launch_median_us": _launch_median_us(events),
    }


def _launch_median_us(events: pd.DataFrame) -> float:
    """Returns the median over whole launches of the time in which anything ran; NaN without an activity."""
    if events.empty:
        return np.nan
    parts = [_span_and_gaps(own) for _, own in events.groupby("launch")]
    return float(np.median([span - gaps.sum() for span, gaps in parts]))


def _span_and_gaps(events: pd.DataFrame) -> tuple[float, "np.ndarray[Any, np.dtype[np.float64]]"]:
    """Returns the time from the first start to the last end, and the gap before each activity but the first, in us."""
    start, end = events["start_us"].to_numpy(), (events["start_us"] + events["duration_us"]).to_numpy()
    until = np.maximum.accumulate(end)
    return float(until[-1] - start[0]), np.clip(start[1:] - until[:-1], 0, None)
