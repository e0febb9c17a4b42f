"""How many warps does each variant keep on an SM, and which resource limits them?"""

from collections import Counter

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from warplog.core.text import listed
from warplog.figures.shared.labels import INK, bar_rows, cells, gap_notes, is_narrow, row_in, text_column
from warplog.figures.shared.style import Look, new_figure, styled, variant_bars
from warplog.metrics import occupancy_limiter
from warplog.metrics.occupancy import LIMITS as LIMITS_OF_SM
from warplog.tables.files import ORIGIN_COLUMNS, as_rows
from warplog.tables.view import FigureTables

NEEDS = ("counters",)
TITLE = "Occupancy and what limits it"
_FULL_PCT = 99.5
NOTE = (
    "outline: theoretical; filled: achieved, counted by ncu (longest kernel of the case); "
    "right: blocks per SM that each resource allows, the smallest in bold"
)
# ncu's limit by shared memory follows from the carve-out only where that limits: metrics.metric.shared_memory_limit.
CARVE_OUT = "; shared: with the largest carve-out of an SM, unless the driver's choice limits the kernel"
LIMITS = {  # column header of each resource
    "registers": "registers",
    "shared_memory": "shared",
    "warps": "warps",
    "blocks": "max blocks",
    "barriers": "barriers",
}


LIMITED = {
    **{name: name for name in LIMITS.values()},
    "shared": "shared memory",
    "warps": "the number of warps",
    "max blocks": "the number of blocks",
}


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per variant: occupancy in percent of an SM's warps, blocks per SM by resource, limiter.

    `limiter` names the resource that allows the fewest blocks, or several separated by commas if they tie.
    `most_shared_kib` is the largest amount of shared memory that an SM can be configured for.
    """
    limits = {f"occupancy_limit_{resource}_blocks": resource for resource in LIMITS}
    occupancies = ["theoretical_occupancy_pct", "achieved_occupancy_pct"]
    rows = tables.counters([*occupancies, *limits])
    counted = rows[occupancies].notna().any(axis=1)
    rows["gap"] = rows["gap"].where(counted | (rows["gap"] != ""), "n/a")
    limiters = [occupancy_limiter(row) for row in as_rows(rows[list(limits)])]
    rows["limiter"] = [", ".join(LIMITS[name] for name in names) for names in limiters]
    rows["most_shared_kib"] = np.where(rows["gap"] == "", _most_shared_kib(tables), np.nan)
    kept = ["family", "variant", "order", "is_baseline", "case", "kernel", "status", "gap", *occupancies]
    return rows[[*kept, "limiter", *limits, "most_shared_kib", *ORIGIN_COLUMNS]]


def _most_shared_kib(tables: FigureTables) -> float:
    """Returns the largest amount of shared memory that the GPU can give to an SM; NaN if it is not known."""
    arch = str(tables.gpus["arch"].iloc[0]) if len(tables.gpus) else "sm_0"
    limits = LIMITS_OF_SM.get(divmod(int(arch.removeprefix("sm_")), 10))
    return limits.shared_bytes / 1024 if limits else np.nan


def _finding(data: pd.DataFrame) -> str:
    """Returns which resource, or which several at once, limit most variants; only the title if no limit is known."""
    good = data[data["gap"] == ""]
    limiters = _limited(good)
    named = Counter(limiter for limiter in limiters if limiter)
    if not named:
        return "Occupancy: no variant is limited" if good["limiter"].astype(bool).any() else TITLE
    names, count = named.most_common(1)[0]
    limits = [LIMITED[name] for name in names.split(", ")]
    limited = "variant is" if len(limiters) == 1 else "variants are"
    return f"Occupancy: {count} of {len(limiters)} {limited} limited by {listed(limits)}"


def _limited(data: pd.DataFrame) -> "pd.Series[str]":
    """Returns what limits each variant; "" for one whose warps fill the SM."""
    return data["limiter"].where(~(data["theoretical_occupancy_pct"] >= _FULL_PCT), "")


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws bars of achieved occupancy inside an outline of the theoretical one; limits beside them."""
    first = data.iloc[0]
    title = f"{_finding(data)} · {first['family']}, case {first['case']}"
    note = NOTE + (CARVE_OUT if data["most_shared_kib"].max() > 0 else "")
    figure = new_figure(title, 0.62 + row_in() * len(data), note, look)
    axes = figure.add_subplot()
    good = data["gap"] == ""
    rows = np.flatnonzero(good)
    axes.barh(rows, data.loc[good, "theoretical_occupancy_pct"].fillna(0), 0.78, fc="none", ec=INK, lw=0.8)
    variant_bars(axes, data, "achieved_occupancy_pct", 0.46, look)
    bar_rows(axes, data["variant"], data["is_baseline"])
    axes.set(xlim=(0, 102), xlabel="occupancy (% of the warps an SM can hold)")
    gap_notes(axes, data["gap"])
    if len(rows):
        _columns(axes, data)
    return figure


def _columns(axes: Axes, data: pd.DataFrame) -> None:
    good = data["gap"] == ""
    end = 0.08
    for header in ("achieved",) if is_narrow() else ("achieved", "theoretical"):
        end = text_column(
            axes, header, cells(data, f"{header}_occupancy_pct", "{:.3g} %".format), end, "right"
        )
    limiters = _limited(data).where(good, "")
    end = text_column(axes, "limited by", list(limiters), end)
    kib = data["most_shared_kib"].max()
    for resource, header in () if is_narrow() else LIMITS.items():
        bold = {row for row, names in enumerate(limiters) if header in names.split(", ")}
        limits = data[f"occupancy_limit_{resource}_blocks"].where(good)
        if limits.notna().any() and (bold or resource != "barriers"):
            blocks = ["" if pd.isna(v) else f"{v:.0f}" for v in limits]
            carve_out = f" {kib:.0f} KiB" if resource == "shared_memory" and kib > 0 else ""
            end = text_column(axes, header + carve_out, blocks, end, "right", bold)
