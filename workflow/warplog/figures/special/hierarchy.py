"""How long does each level of memory take to answer, how much does it deliver, and how much does it hold?"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from warplog.core.numbers import rate_unit
from warplog.figures.shared.labels import (
    INK,
    cells,
    gap_notes,
    is_narrow,
    number,
    row_in,
    text_column,
    tick,
)
from warplog.figures.shared.latencies import SRAM_KIB, latencies, short_bytes
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.tables.files import ORIGIN_COLUMNS
from warplog.tables.view import FigureTables

NEEDS = ("listed",)
TITLE = "Levels of memory"
NOTE = (
    "latency: of a load that needs the result of the one before, in cycles of the SM clock; bandwidth: of reads by all "
    "SMs; capacity: of shared memory and L1 per SM, which share it"
)


@dataclass(frozen=True)
class _Level:
    """A level: the variants and cases that show it.

    Attributes:
        chase: variant and longer case of its latency.
        stream: variant, cases and bytes of its bandwidth: the bytes that each SM reads more in the second case than in
            the first; or all bytes of the only case.
    """

    name: str
    short: str
    chase: tuple[str, str]
    stream: tuple[str, tuple[str, ...], int] | None = None


LEVELS = (
    _Level("shared memory", "shared", ("chase_shared", "16Kix12288"),
           ("stream_shared", ("64Ki-64-rounds", "64Ki-256-rounds"), 192 * 2**16)),
    _Level("L1", "L1", ("chase_pointers", "16Kix12288"),
           ("stream_4", ("64Ki-64-rounds", "64Ki-256-rounds"), 192 * 2**16)),
    _Level("shared memory of another SM", "DSMEM", ("chase_dsmem", "16Kix12288")),
    _Level("L2", "L2", ("chase_pointers", "8Mix12288"),
           ("stream_4", ("16Mi-2-rounds", "16Mi-6-rounds"), 4 * 2**24)),
    _Level("device memory", "DRAM", ("chase", "256Mix12288"), ("stream_4", ("512Mi-64-warps",), 2**29)),
    _Level("host memory", "host", ("chase_host", "64Mix12288")),
)  # fmt: skip


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per level, from the fastest: capacity, latency, bandwidth, and the variants and cases of both.

    `gap` is why there is no latency.
    """
    capacity = _capacities(tables)
    levels = pd.DataFrame(
        {
            "family": tables.family, "level": level.name, "short": level.short,
            "capacity_bytes": capacity.get(level.short, np.nan),
            "variant": level.chase[0], "case": level.chase[1], "gbytes_per_s": _bandwidth(tables, level),
            "stream_variant": level.stream[0] if level.stream else "",
            "stream_cases": ", ".join(level.stream[1]) if level.stream else "",
        }
        for level in LEVELS
    )  # fmt: skip
    loads = latencies(tables)[["variant", "case", "gap", "hop_ns", "hop_cycles", "sm_mhz", *ORIGIN_COLUMNS]]
    rows = levels.merge(loads, on=["variant", "case"], how="left")
    rows["gap"] = rows["gap"].fillna("not measured")
    return rows if (rows["gap"] == "").any() else rows.iloc[:0]


def _capacities(tables: FigureTables) -> dict[str, float]:
    arch = str(tables.gpus["arch"].iloc[0]) if "arch" in tables.gpus and len(tables.gpus) else ""
    l1, shared = SRAM_KIB.get(arch, (np.nan, np.nan))
    device = {"L2": tables.peak("l2_mib") * 2**20, "DRAM": tables.peak("memory_gib") * 2**30}
    return {"shared": shared * 1024, "DSMEM": shared * 1024, "L1": l1 * 1024, **device}


def _bandwidth(tables: FigureTables, level: _Level) -> float:
    """Returns what all SMs read together, in GB/s; NaN if a case has no time."""
    if level.stream is None:
        return np.nan
    variant, cases, moved = level.stream
    rows = tables.measurements[tables.measurements["variant"] == variant]
    us = [float(rows.loc[rows["case"] == case, "median_us"].sum(min_count=1)) for case in cases]
    if len(us) == 1:
        return moved / us[0] / 1e3
    return moved * tables.peak("sms") / (us[1] - us[0]) / 1e3


def _finding(data: pd.DataFrame) -> str:
    """Returns how much longer device memory takes than shared memory; the title without both."""
    cycles = data.set_index("short")["hop_cycles"]
    ratio = cycles["DRAM"] / cycles["shared"]
    if not np.isfinite(ratio):
        return TITLE
    return f"Device memory takes {number(ratio)} times as long to answer as shared memory"


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws a bar per level for its latency, and columns of numbers beside."""
    title = f"{_finding(data)} · {data.iloc[0]['family']}"
    figure = new_figure(title, 0.75 + 1.25 * row_in() * len(data), NOTE, look)
    axes = figure.add_subplot()
    styles = [look.style(name) for name in data["variant"]]
    axes.barh(
        range(len(data)), data["hop_ns"].fillna(0), 0.7, ec=INK, lw=0.5,
        color=[own.colour for own in styles], hatch=[own.hatch for own in styles],
    )  # fmt: skip
    axes.set_yticks(range(len(data)), data["short" if is_narrow() else "level"])
    axes.set_ylim(len(data) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    _latencies(axes, data)
    gap_notes(axes, data["gap"])
    _columns(axes, data)
    return figure


def _latencies(axes: Axes, data: pd.DataFrame) -> None:
    """Sets up the axis of latencies."""
    low, high = data["hop_ns"].min(), data["hop_ns"].max()
    axes.set(xscale="log", xlabel="latency (ns)")
    axes.set_xlim(low / 3, high * 1.1)
    axes.xaxis.set_major_locator(LogLocator(subs=(1,)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ns, _: tick(ns)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="x")


def _columns(axes: Axes, data: pd.DataFrame) -> None:
    end = 0.06
    for header, column, text in (
        ("cycles", "hop_cycles", number),
        ("ns", "hop_ns", number),
    ):
        end = text_column(axes, header, cells(data, column, text), end, "right")
    unit, factor = rate_unit("GB/s", data["gbytes_per_s"])
    rates = ["" if np.isnan(rate) else number(rate * factor) for rate in data["gbytes_per_s"]]
    end = text_column(axes, unit, rates, end, "right")
    sizes = ["" if np.isnan(size) else f"{short_bytes(size, ' ')}B" for size in data["capacity_bytes"]]
    text_column(axes, "capacity", sizes, end, "right")
