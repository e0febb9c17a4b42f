"""Is each variant bound by memory or by compute, and how far below its roof does it run?"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter
from matplotlib.transforms import ScaledTranslation

from warplog.core import columns
from warplog.core.columns import Cell, Row
from warplog.core.numbers import rate_unit
from warplog.figures.shared.highlight import GREY
from warplog.figures.shared.labels import (
    INK,
    MUTED,
    ON_PAPER,
    SideLabel,
    fit,
    is_narrow,
    legend_above,
    line_in,
    name_in,
    number,
    plot_width_in,
    side_labels,
    text_width_in,
    tick,
)
from warplog.figures.shared.placement import along, sampled
from warplog.figures.shared.style import Look, VariantStyle, new_figure, styled
from warplog.tables import regimes
from warplog.tables.files import ORIGIN_COLUMNS, as_rows
from warplog.tables.view import FigureTables, words

NEEDS = ("counters", "flops")
TITLE = "Roofline"
NOTE = (
    "FLOPs: the algorithm's; rate: timed launches{regime}; bytes of the whole launch, counted by ncu; %: throughput "
    "relative to the roof at this intensity; peaks: {peaks}"
)
NO_L1 = "; no L1 where TMA bypasses it"
NOT_COUNTED = "copies not counted"
ROOF_COLUMNS = ["kind", "label", "gflops", "gbytes_per_s", "intensity_flop_per_byte", "sm_mhz", "peak_source"]
COUNTERS = ["duration_us", "dram_bytes"]
LEVELS = {"dram": "DRAM", "l2": "L2", "l1": "L1"}  # prefix of the metric `<prefix>_bytes`: name
_TMA = ("inst_utmaldg", "inst_utmastg")
# Bytes per clock and SM of L1, which shared memory is a part of: 32 banks of 4 bytes (CUDA C++ Best Practices Guide,
# section "Shared Memory"). NVIDIA publishes no bandwidth of L2.
_L1_BYTES = 128
# By the name of a roof, the ceiling that replaces its peak, the column of its rate, and the factor to that.
CEILINGS = {
    "FP32": ("fp32_tflops", "gflops", 1e3),
    **{level: (f"{level.lower()}_gbytes_per_s", "gbytes_per_s", 1.0) for level in LEVELS.values()},
}
_Roof = tuple[str, tuple[float, float], tuple[float, float]]  # label, and both ends in data units
_SAME = 0.02  # a roof at the measured clock is drawn if it differs by this much from the peak


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per element of the figure; `kind` is point, compute, clock or memory (roofs), or algorithm.

    intensity_flop_per_byte is the algorithm's FLOPs per byte of DRAM traffic of a point's launch (all its kernels), or
    the compulsory one of the algorithm's mark; l2_flop_per_byte and l1_flop_per_byte count the bytes looked up in L2
    and L1. Counted FLOPs would include instructions that only move constants, and would not fit the rate. gflops is
    the algorithm's rate of a point or a compute roof, gbytes_per_s a memory roof. A roof of the kind clock is the
    highest compute roof at the SM clock of the fastest variant. roof_pct is a point's rate in percent of the lower of
    DRAM's and the compute roof at its intensity; clock_roof_pct uses the compute roof at the point's own SM clock.
    """
    points = tables.counters(COUNTERS)
    timed = tables.ladder(tables.profiled_case)
    points["gflops"] = timed["gflops"].where(timed["status"] == "ok")
    points["sm_mhz"] = pd.to_numeric(timed["sm_mhz"], errors="coerce") if "sm_mhz" in timed else np.nan
    flops = points["gflops"] * timed["median_us"] * 1e3
    for level in LEVELS:
        moved = points["variant"].map(_launch_bytes(tables, level))
        points[f"launch_{level}_bytes"] = moved
        points[f"{level}_flop_per_byte"] = flops / moved.where(moved > 0)
    points = points.rename(columns={"dram_flop_per_byte": "intensity_flop_per_byte"})
    points["regime"] = regimes.where_timed(as_rows(timed))
    copied = points["variant"].isin(_with_copies(tables))
    levels = [_intensity(level) for level in LEVELS]
    points[levels] = points[levels].mask(copied)
    drawn = (points["intensity_flop_per_byte"] > 0) & (points["gflops"] > 0)
    idle = points["gflops"].fillna(np.nan) == 0
    why = np.select([idle, copied], ["no FLOPs", NOT_COUNTED], "n/a")
    points["gap"] = np.where(points["gap"] != "", points["gap"], why)
    points["gap"] = points["gap"].where(~drawn, "")
    roofs = _roofs(tables, points)
    top = roofs.loc[roofs["kind"] == "compute", "gflops"].max()
    top = top if top > points["gflops"].max() else np.nan  # tensor cores are used and their peak is unknown
    dram = roofs.loc[roofs["label"].str.startswith("DRAM "), "gbytes_per_s"].max()
    under_dram = points["intensity_flop_per_byte"] * dram
    points["roof_pct"] = 100 * points["gflops"] / np.minimum(under_dram, top)
    points["clock_roof_pct"] = (
        100 * points["gflops"] / np.minimum(under_dram, _at_clock(tables, top, points["sm_mhz"]))
    )
    rows = pd.concat([points.assign(kind="point", label=points["variant"]), roofs])
    kept = ["family", "kind", "label", "variant", "order", "is_baseline", "case", "kernel", "status", "gap"]
    kept += ["own_limits"]
    kept += [f"launch_{level}_bytes" for level in LEVELS]
    kept += [
        "intensity_flop_per_byte",
        "l2_flop_per_byte",
        "l1_flop_per_byte",
        "gflops",
        "sm_mhz",
        "roof_pct",
    ]
    kept += ["clock_roof_pct", "gbytes_per_s", "regime", "peak_source"]
    origin = {c: points[c].iloc[0] for c in ORIGIN_COLUMNS}
    return rows.reindex(columns=[*kept, *ORIGIN_COLUMNS]).fillna({"family": tables.family, **origin})


def _launch_bytes(tables: FigureTables, level: str) -> dict[str, float]:
    """Returns the bytes of each variant's launch at the profiled case; NaN if those of a kernel are missing.

    A variant has none for L1 if it copies with the TMA unit, whose bytes go from L2 to shared memory.
    """
    rows = tables.metrics[
        (tables.metrics["case"] == tables.profiled_case) & (tables.metrics["tool"] == "ncu")
    ]
    past_l1 = rows.loc[rows["metric"].isin(_TMA) & (rows["value"] > 0), "variant"] if level == "l1" else ()
    counted = rows[(rows["metric"] == f"{level}_bytes") & ~rows["variant"].isin(past_l1)]
    sums = counted.groupby("variant")["value"].sum(min_count=1)
    return {str(variant): float(total) for variant, total in sums.items()}


def _with_copies(tables: FigureTables) -> set[str]:
    """Returns the variants that copy memory besides their kernels, whose bytes ncu does not count."""
    events = tables.timeline
    return set(events.loc[(events["kind"] == "memcpy") & (events["case"] == tables.profiled_case), "variant"])


def _at_clock(tables: FigureTables, gflops: float, mhz: "float | pd.Series") -> Any:
    """Returns a compute peak at an SM clock.

    Data sheets state peaks at clocks that differ by type. FLOPs per SM and clock are powers of two (CUDA C++
    Programming Guide, throughput of native arithmetic instructions): the one next to the peak at the maximum clock.
    """
    sms, max_mhz = tables.peak("sms"), tables.peak("max_sm_mhz")
    if not gflops * sms * max_mhz > 0:
        return mhz * np.nan
    per_clock = float(2.0 ** np.round(np.log2(gflops * 1e3 / (sms * max_mhz))))
    return per_clock * sms * mhz * 1e-3


def _roof(tables: FigureTables, kind: str, label: str, peak: float, source: str) -> dict[str, Cell]:
    """Returns a roof: the rate that kernels of the campaign reach, if it was measured, otherwise the peak."""
    name = label.removesuffix(" peak")
    ceiling, rate, scale = CEILINGS.get(name, ("", "gflops", 1.0))
    value, family = tables.ceiling(ceiling)
    if not value > 0:
        return {"kind": kind, "label": label, rate: peak, "peak_source": source}
    measured = f"{name}: measured by {family}"
    return {"kind": kind, "label": f"{name} measured", rate: scale * value, "peak_source": measured}


def _roofs(tables: FigureTables, points: pd.DataFrame) -> pd.DataFrame:
    best = points.sort_values("gflops", na_position="first").iloc[-1]
    source = tables.peaks_text()
    peaks = tables.compute_peaks(float(best["gflops"]))
    roofs = [_roof(tables, "compute", name, peak, source) for name, peak in peaks]
    name, peak = peaks[-1] if peaks else ("", np.nan)
    if peak > best["gflops"]:
        clocked = _at_clock(tables, peak, best["sm_mhz"])
        if abs(clocked / peak - 1) > _SAME:
            label = f"{name.removesuffix(' peak')} at {best['sm_mhz']:.0f} MHz"
            roofs.append({"kind": "clock", "label": label, "gflops": clocked, "sm_mhz": best["sm_mhz"]})
    l1 = _L1_BYTES * tables.peak("sms") * tables.peak("max_sm_mhz") * 1e-3
    levels = [_roof(tables, "memory", "DRAM peak", tables.peak("dram_gbytes_per_s_peak"), source)]
    if points["l2_flop_per_byte"].notna().any():
        levels.append(_roof(tables, "memory", "L2 peak", np.nan, ""))
    if points["l1_flop_per_byte"].notna().any():
        per_clock = f"L1: {_L1_BYTES} bytes per clock and SM"
        levels.append(_roof(tables, "memory", "L1 peak", l1, per_clock))
    roofs += [roof for roof in levels if columns.number(roof, "gbytes_per_s") > 0]
    compulsory = tables.compulsory_intensity()
    if np.isfinite(compulsory) and compulsory > 0:
        label = "compulsory traffic"
        roofs.append({"kind": "algorithm", "label": label, "intensity_flop_per_byte": compulsory})
    return pd.DataFrame(roofs, columns=ROOF_COLUMNS).assign(case=tables.profiled_case)


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws log-log roofs and a marker per variant and level of memory, with names in the margin in order of height."""
    data = _in_its_unit(data)
    points, first = data[data["kind"] == "point"], data.iloc[0]
    drawn = points[points["gap"] == ""]
    shown = look.coloured(points["variant"])
    others, coloured = drawn[~drawn["variant"].isin(shown)], drawn[drawn["variant"].isin(shown)]
    labelled = points[points["variant"].isin(shown) | (points["gap"] != "")]
    body = 2.8 if is_narrow() else max(4.2, 0.75 + line_in() * len(labelled))
    figure = new_figure(_title(first, coloured), body, _note(data, coloured, others), look, timed=True)
    axes = figure.add_subplot()
    axes.set(xscale="log", yscale="log")
    labels = [_label(point, look) for point in as_rows(labelled)]
    width = plot_width_in(labels)
    _limits(axes, data)
    _draw_roofs(axes, data, width, body - 0.7)
    axes.scatter(others["intensity_flop_per_byte"], others["rate"], s=60, color=GREY, zorder=2)
    for point in as_rows(coloured):
        _draw_levels(axes, point, look.style(str(point["variant"])))
    side_labels(axes, labels, body - 0.7, width)
    if len(coloured):
        named = [name for level, name in LEVELS.items() if coloured[_intensity(level)].notna().any()]
        legend_above(axes, [Line2D([], [], label=name, **_mark(name, MUTED, "o")) for name in named])
    axes.set_xlabel("arithmetic intensity (FLOP per byte, log scale)")
    axes.set_ylabel(f"throughput ({first['unit']}, log scale)")
    return figure


def _note(data: pd.DataFrame, coloured: pd.DataFrame, others: pd.DataFrame) -> str:
    first = data.iloc[0]
    sources = dict.fromkeys(str(s) for s in data["peak_source"].dropna() if s)
    note = NOTE.format(regime=f" {first['regime']}", peaks="; ".join(sources) or "unknown for this GPU")
    past_l1 = coloured["l1_flop_per_byte"].isna() & coloured["l2_flop_per_byte"].notna()
    note += NO_L1 if past_l1.any() else ""
    grey = ", ".join(fit(str(variant), name_in()) for variant in others["variant"])
    return note + (f"; grey: {grey}" if grey else "")


def _intensity(level: str) -> str:
    return "intensity_flop_per_byte" if level == "dram" else f"{level}_flop_per_byte"


def _mark(level: str, colour: str, marker: str) -> dict[str, Any]:
    """Returns how a level's marker is drawn: filled for DRAM, hollow for L2, a tick for L1."""
    size = 9.0 if marker == "*" else 6.5
    filled = {"marker": marker, "markersize": size, "markeredgecolor": "white", "markeredgewidth": 0.6}
    hollow = {"marker": marker, "markersize": 0.8 * size, "markerfacecolor": "white", "markeredgewidth": 1.0}
    tick_mark = {"marker": "|", "markersize": 8.0, "markeredgewidth": 1.6}
    return {"color": colour, "linestyle": "", **{"DRAM": filled, "L2": hollow, "L1": tick_mark}[level]}


def _draw_levels(axes: Axes, point: Row, style: VariantStyle) -> None:
    """Draws a variant's markers, joined by a line: the longer it is, the more a level serves from what it keeps."""
    places = {name: columns.number(point, _intensity(level)) for level, name in LEVELS.items()}
    at, rate = {name: x for name, x in places.items() if np.isfinite(x)}, columns.number(point, "rate")
    axes.plot(list(at.values()), [rate] * len(at), color=style.edge, lw=0.8, alpha=0.7, zorder=2.5)
    for place, (name, intensity) in enumerate(at.items()):
        axes.plot(intensity, rate, zorder=3.5 - 0.1 * place, **_mark(name, style.edge, style.marker))


def _title(first: pd.Series, drawn: pd.DataFrame) -> str:
    """Returns the finding: which variant is closest to its roof."""
    where = f"{first['family']}, case {first['case']}"
    rated = drawn[drawn["roof_pct"].notna()]
    if rated.empty:
        return f"{TITLE} · {where}"
    best = max(as_rows(rated), key=lambda row: columns.number(row, "roof_pct"))
    names = ("roof_pct", "clock_roof_pct", "sm_mhz")
    percent, clocked, mhz = (columns.number(best, name) for name in names)
    finding = f"{best['variant']} reaches {percent:.0f} % of its roof"
    if abs(clocked / percent - 1) > _SAME:
        finding += f", {clocked:.0f} % at {mhz:.0f} MHz"
    return f"{TITLE}: {finding} · {where}"


def _in_its_unit(data: pd.DataFrame) -> pd.DataFrame:
    """Adds `unit`, `rate` (of points and compute roofs) and `slope` (of memory roofs) in that unit."""
    unit, factor = rate_unit("GFLOP/s", data["gflops"])
    return data.assign(rate=data["gflops"] * factor, slope=data["gbytes_per_s"] * factor, unit=unit)


def _label(point: Row, look: Look) -> SideLabel:
    name = fit(str(point["variant"]), name_in())
    if why := columns.text(point, "gap"):
        failed = point["status"] not in ("ok", "missing")
        why = words(point["status"], point["own_limits"]) if failed else why
        return SideLabel(np.nan, np.nan, f"{name}: {why}")
    style, share = look.style(str(point["variant"])), columns.number(point, "roof_pct")
    text = f"{name}  {share:.0f} %" if np.isfinite(share) else name
    across, up = (columns.number(point, name) for name in ("intensity_flop_per_byte", "rate"))
    return SideLabel(across, up, text, style.edge, style.marker)


def _limits(axes: Axes, data: pd.DataFrame) -> None:
    """Sets limits around points, marks and ridges, a factor of about three wider."""
    roofs, slope = data.loc[data["kind"] == "compute", "rate"], data["slope"].max()
    ridges = list(roofs / slope) if slope > 0 else []
    marks = [x for level in LEVELS for x in data[_intensity(level)]]
    across = [x for x in [*marks, *ridges] if x > 0] or [1.0]
    up = [y for y in data["rate"] if y > 0] or [1.0]
    axes.set_xlim(min([x / 2 for x in across] + [x / 4 for x in ridges]), max(across) * 3)
    axes.set_ylim(min(min(up) / 2.5, max(up) / 30), max(up) * 2.2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    axes.grid(axis="both")


def _draw_roofs(axes: Axes, data: pd.DataFrame, width: float, height: float) -> None:
    """Draws compute roofs, the slanted memory roofs up to the highest of them, and the algorithm's mark.

    `width` and `height` in inches are those of the axes.
    """
    low, high = axes.get_xlim()
    compute, memory = (data[data["kind"].isin(kinds)] for kinds in (("compute", "clock"), ("memory",)))
    above = compute.empty or float(data["rate"].max()) > float(compute["rate"].max())
    top = axes.get_ylim()[1] if above else float(compute["rate"].max())
    steepest = float(memory["slope"].max()) if len(memory) else np.inf
    roofs: list[_Roof] = []
    for roof in as_rows(compute):
        rate = columns.number(roof, "rate")
        start = max(low, rate / steepest)
        text = f"{_roof_name(roof)} {number(rate)} {roof['unit']}"
        if roof["kind"] == "clock":
            _clock_roof(axes, (start, rate), text, f"at {columns.number(roof, 'sm_mhz'):.0f} MHz", width)
        roofs.append((text if roof["kind"] == "compute" else "", (start, rate), (high, rate)))
    for roof in as_rows(memory):
        slope = columns.number(roof, "slope")
        text = f"{_roof_name(roof)} {number(columns.number(roof, 'gbytes_per_s'))} GB/s"
        foot = max(low, axes.get_ylim()[0] / slope)
        roofs.append((text, (foot, foot * slope), (top / slope, top)))
    for text, begin, end in roofs:
        if text:
            axes.plot(*zip(begin, end, strict=True), color=INK, lw=1.1)
    for mark in as_rows(data.loc[data["kind"] == "algorithm"]):
        _algorithm(axes, str(mark["label"]), columns.number(mark, "intensity_flop_per_byte"))
    _label_roofs(axes, data, roofs, (width, height))


def _roof_name(roof: Row) -> str:
    """Returns the label of a roof; in a narrow figure, the note alone says whether its height was measured."""
    label = str(roof["label"])
    return label.removesuffix(" peak").removesuffix(" measured") if is_narrow() else label


def _label_roofs(axes: Axes, data: pd.DataFrame, roofs: Sequence[_Roof], size: tuple[float, float]) -> None:
    """Writes the labels along the roofs, where they cover neither markers nor other lines; `size` is in inches."""
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    figure = axes.get_figure(root=True)
    assert figure is not None

    def place(x: float, y: float) -> tuple[float, float]:
        return size[0] * np.log(x / x0) / np.log(x1 / x0), size[1] * np.log(y / y0) / np.log(y1 / y0)

    marks = data.loc[data["kind"] == "algorithm", "intensity_flop_per_byte"]
    lines = [(start, end) for _, start, end in roofs] + [((at, y0), (at, y1)) for at in marks]
    for point in as_rows(data[data["rate"].notna()]):
        at = [x for level in LEVELS if (x := columns.number(point, _intensity(level))) > 0]
        rate = columns.number(point, "rate")
        lines += [((min(at), rate), (max(at), rate))] if at else []
    obstacles = np.vstack([sampled(place(*start), place(*end)) for start, end in lines])
    slanted_first = sorted(roofs, key=lambda roof: roof[1][1] == roof[2][1])  # their places are fewer
    for text, start, end in slanted_first:
        if not text:
            continue
        a, b, box = place(*start), place(*end), (text_width_in(text), 0.8 * line_in())
        is_flat = a[1] == b[1]
        corner, covered = along((0, a[1]) if is_flat else a, b, box, obstacles, size, late=is_flat)
        obstacles = np.vstack([obstacles, covered])
        across, up = np.subtract(b, a) / size
        above = ScaledTranslation(0 if is_flat else -3 / 72, 4 / 72, figure.dpi_scale_trans)
        axes.text(
            corner[0] / size[0],
            corner[1] / size[1],
            text,
            transform=axes.transAxes + above,
            rotation=float(np.degrees(np.arctan2(up, across))),
            rotation_mode="anchor",
            transform_rotates_text=True,  # the final size of the axes is that of the layout
            zorder=4,
        )


def _algorithm(axes: Axes, label: str, at: float) -> None:
    """Draws the algorithm's intensity as a vertical line, labelled at the bottom."""
    low, high = axes.get_xlim()
    axes.axvline(at, color=MUTED, lw=0.9, ls=(0, (4, 2)), zorder=0.9)
    left = np.log(at / low) > np.log(high / at)
    axes.annotate(
        f"{label}: {tick(float(f'{at:.3g}'))} FLOP/B",
        (at, 0),
        (-4 if left else 4, 4),
        color=MUTED,
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right" if left else "left",
    )


def _clock_roof(axes: Axes, start: tuple[float, float], text: str, short: str, width: float) -> None:
    """Draws the compute roof at the measured clock as a dashed line, with a label to the left that has room there."""
    low, high = axes.get_xlim()
    axes.plot([start[0], high], [start[1]] * 2, color=INK, lw=1.1, ls=(0, (3, 1.5)))
    room = width * np.log(start[0] / low) / np.log(high / low) - 0.1
    axes.annotate(
        text if text_width_in(text) < room else short,
        start,
        (-5, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        bbox=ON_PAPER,
    )
