"""Is each variant bound by memory or by compute, and how far below its roof does it run?"""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from warplog.core.numbers import rate_unit
from warplog.plotting.highlight import GREY, highlighted
from warplog.plotting.labels import (
    INK,
    LINE_IN,
    MUTED,
    NAME_IN,
    ON_PAPER,
    WIDTH_IN,
    SideLabel,
    fit,
    number,
    side_labels,
    text_width_in,
    tick,
)
from warplog.plotting.style import Look, new_figure, styled
from warplog.tables import regimes
from warplog.tables.files import ORIGIN_COLUMNS
from warplog.tables.view import FigureTables

NEEDS = ("counters", "flops")
TITLE = "Roofline"
NOTE = (
    "FLOPs: the algorithm's, on both axes; rate: timed launches{regime}; bytes: DRAM traffic of the launch, counted by "
    "ncu; %: share of the roof above the point; peaks: {peaks}"
)
ROOF_COLUMNS = ["kind", "label", "gflops", "gbytes_per_s", "intensity_flop_per_byte", "peak_source"]
COUNTERS = ["duration_us", "dram_bytes"]


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per element of the figure; `kind` is point, compute or memory (roofs), or algorithm.

    intensity_flop_per_byte is the algorithm's FLOPs per byte of DRAM traffic of a point's launch (all its kernels), or
    the compulsory one of the algorithm's mark. Counted FLOPs would include instructions that only move constants, and
    would not fit the rate. gflops is the algorithm's rate of a point or a compute roof, gbytes_per_s a memory roof;
    roof_pct is a point's rate in percent of the lower of the two roofs at its intensity.
    """
    points = tables.counters(COUNTERS)
    timed = tables.ladder(tables.profiled_case)
    points["gflops"] = timed["gflops"].where(timed["status"] == "ok")
    points["launch_dram_bytes"] = points["variant"].map(_launch_bytes(tables))
    flops = points["gflops"] * timed["median_us"] * 1e3
    points["intensity_flop_per_byte"] = flops / points["launch_dram_bytes"]
    points["regime"] = regimes.where_timed(timed.to_dict("records"))
    drawn = (points["intensity_flop_per_byte"] > 0) & (points["gflops"] > 0)
    idle = points["gflops"].fillna(np.nan) == 0
    points["gap"] = np.where(points["gap"] != "", points["gap"], np.where(idle, "no FLOPs", "n/a"))
    points["gap"] = points["gap"].where(~drawn, "")
    roofs = _roofs(tables, timed)
    top = roofs.loc[roofs["kind"] == "compute", "gflops"].max()
    top = top if top > points["gflops"].max() else np.nan  # tensor cores are used and their peak is unknown
    under_dram = points["intensity_flop_per_byte"] * tables.peak("dram_gbytes_per_s_peak")
    points["roof_pct"] = 100 * points["gflops"] / np.minimum(under_dram, top)
    rows = pd.concat([points.assign(kind="point", label=points["variant"]), roofs])
    kept = ["family", "kind", "label", "variant", "order", "is_baseline", "case", "kernel", "status", "gap"]
    kept += ["launch_dram_bytes", "intensity_flop_per_byte", "gflops", "roof_pct", "gbytes_per_s", "regime"]
    origin = {c: points[c].iloc[0] for c in ORIGIN_COLUMNS}
    return rows.reindex(columns=[*kept, "peak_source", *ORIGIN_COLUMNS]).fillna(
        {"family": tables.family, **origin}
    )


def _launch_bytes(tables: FigureTables) -> dict[str, float]:
    """Returns the DRAM bytes of each variant's launch at the profiled case; NaN if those of a kernel are missing."""
    rows = tables.metrics[
        (tables.metrics["case"] == tables.profiled_case) & (tables.metrics["tool"] == "ncu")
    ]
    sums = rows[rows["metric"] == "dram_bytes"].groupby("variant")["value"].sum(min_count=1)
    return {str(variant): float(total) for variant, total in sums.items()}


def _roofs(tables: FigureTables, timed: pd.DataFrame) -> pd.DataFrame:
    good = timed[timed["status"] == "ok"]
    best = float(good["gflops"].max())
    source = str(tables.gpus["source"].iloc[0]) if len(tables.gpus) else ""
    roofs = [
        {"kind": "compute", "label": name, "gflops": peak, "peak_source": source}
        for name, peak in tables.ceilings(best)
    ]
    dram = tables.peak("dram_gbytes_per_s_peak")
    if dram > 0:
        roofs.append({"kind": "memory", "label": "DRAM peak", "gbytes_per_s": dram, "peak_source": source})
    compulsory = tables.compulsory_intensity()
    if np.isfinite(compulsory) and compulsory > 0:
        label = "compulsory traffic"
        roofs.append({"kind": "algorithm", "label": label, "intensity_flop_per_byte": compulsory})
    return pd.DataFrame(roofs, columns=ROOF_COLUMNS).assign(case=tables.profiled_case)


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws log-log roofs and one marker per variant, with names in the margin in order of height."""
    data = _in_its_unit(data)
    points, first = data[data["kind"] == "point"], data.iloc[0]
    drawn = points[points["gap"] == ""]
    sources = sorted({str(s) for s in data["peak_source"].dropna() if s})
    speeds = dict(zip(points["variant"], points["gflops"].where(points["gap"] == ""), strict=True))
    shown = highlighted(speeds, list(points.loc[points["is_baseline"] == True, "variant"]))  # noqa: E712
    note = NOTE.format(regime=f" {first['regime']}", peaks=", ".join(sources) or "unknown for this GPU")
    others = drawn[~drawn["variant"].isin(shown)]
    labelled = points[points["variant"].isin(shown) | (points["gap"] != "")]
    body = max(4.0, 0.75 + LINE_IN * len(labelled))
    note += f"; grey: {', '.join(fit(str(v), NAME_IN) for v in others['variant'])}" if len(others) else ""
    figure = new_figure(_title(first, drawn), body, note, look)
    axes = figure.add_subplot()
    axes.set(
        xscale="log", yscale="log", xlabel="arithmetic intensity (FLOP per byte of DRAM traffic, log scale)"
    )
    labels = [_label(point, look) for point in labelled.to_dict("records")]
    width = WIDTH_IN - 0.9 - max(text_width_in(label.text) for label in labels)
    _limits(axes, data)
    _draw_roofs(axes, data, width, body - 0.5)
    if len(drawn):
        styles = {v: look.style(v) for v in drawn["variant"] if v in shown}
        axes.scatter(others["intensity_flop_per_byte"], others["rate"], s=14, color=GREY, zorder=2)
        sns.scatterplot(
            drawn[drawn["variant"].isin(shown)],
            x="intensity_flop_per_byte",
            y="rate",
            hue="variant",
            style="variant",
            size="variant",
            palette={v: s.edge for v, s in styles.items()},
            markers={v: s.marker for v, s in styles.items()},
            sizes={v: 110 if s.marker == "*" else 46 for v, s in styles.items()},
            edgecolor="white",
            linewidth=0.6,
            zorder=3,
            legend=False,
            ax=axes,
        )
    side_labels(axes, labels, body - 0.5, width)
    axes.set_xlabel("arithmetic intensity (FLOP per byte of DRAM traffic, log scale)")
    axes.set_ylabel(f"throughput ({first['unit']}, log scale)")
    return figure


def _title(first: pd.Series, drawn: pd.DataFrame) -> str:
    """Returns the finding: which variant is closest to its roof."""
    where = f"{first['family']}, case {first['case']}"
    known = drawn[drawn["roof_pct"].notna()]
    if known.empty:
        return f"{TITLE} · {where}"
    best = max(known.to_dict("records"), key=lambda row: row["roof_pct"])
    return f"{TITLE}: {best['variant']} reaches {best['roof_pct']:.0f} % of its roof · {where}"


def _in_its_unit(data: pd.DataFrame) -> pd.DataFrame:
    """Adds `unit`, `rate` (of points and compute roofs) and `slope` (of memory roofs) in that unit."""
    unit, factor = rate_unit("GFLOP/s", data["gflops"])
    return data.assign(rate=data["gflops"] * factor, slope=data["gbytes_per_s"] * factor, unit=unit)


def _label(point: Mapping[Hashable, Any], look: Look) -> SideLabel:
    name = fit(point["variant"], NAME_IN)
    if point["gap"]:
        return SideLabel(np.nan, np.nan, f"{name}: {point['gap'].split(':')[0]}")
    style, share = look.style(point["variant"]), point["roof_pct"]
    text = f"{name}  {share:.0f} %" if np.isfinite(share) else name
    return SideLabel(point["intensity_flop_per_byte"], point["rate"], text, style.edge, style.marker)


def _limits(axes: Axes, data: pd.DataFrame) -> None:
    """Sets limits around points, marks and ridges, a factor of about three wider."""
    roofs, slope = data.loc[data["kind"] == "compute", "rate"], data["slope"].max()
    ridges = list(roofs / slope) if slope > 0 else []
    across = [x for x in [*data["intensity_flop_per_byte"], *ridges] if x > 0] or [1.0]
    up = [y for y in data["rate"] if y > 0] or [1.0]
    axes.set_xlim(min([x / 3 for x in across] + [x / 6 for x in ridges]), max(across) * 3)
    axes.set_ylim(min(min(up) / 2.5, max(up) / 30), max(up) * 2.2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    axes.grid(axis="both")
    sns.despine(ax=axes)


def _draw_roofs(axes: Axes, data: pd.DataFrame, width_in: float, height_in: float) -> None:
    """Draws compute roofs, the slanted memory roof up to the highest of them, and the algorithm's mark."""
    low, high = axes.get_xlim()
    compute, memory = data[data["kind"] == "compute"], data[data["kind"] == "memory"]
    above = float(data["rate"].max()) > float(compute["rate"].max()) or compute.empty
    top = axes.get_ylim()[1] if above else float(compute["rate"].max())
    slope = float(memory["slope"].max()) if len(memory) else np.inf
    for roof in compute.to_dict("records"):
        ridge = max(low, roof["rate"] / slope) if slope < np.inf else low
        axes.plot([ridge, high], [roof["rate"]] * 2, color=INK, lw=1.1)
        text = f"{roof['label']} {number(roof['rate'])} {roof['unit']}"
        fits = text_width_in(text) + 0.2 < width_in * np.log(high / ridge) / np.log(high / low)
        axes.annotate(
            text,
            (ridge if fits else high, roof["rate"]),
            (12 if fits else 0, 4.5),
            textcoords="offset points",
            ha="left" if fits else "right",
            bbox=ON_PAPER,
            zorder=4,
        )
    if slope < np.inf:
        axes.plot([low, top / slope], [low * slope, top], color=INK, lw=1.1)
        text = f"DRAM peak {number(memory['gbytes_per_s'].max())} GB/s"
        _slanted(axes, text, slope, top, list(data["intensity_flop_per_byte"]), height_in / width_in)
    for mark in data[data["kind"] == "algorithm"].to_dict("records"):
        at = mark["intensity_flop_per_byte"]
        axes.axvline(at, color=MUTED, lw=0.9, ls=(0, (4, 2)), zorder=0.9)
        left = np.log(at / low) > np.log(high / at)
        axes.annotate(
            f"{mark['label']}: {number(at)} FLOP/B",
            (at, 0),
            (-4 if left else 4, 4),
            color=MUTED,
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="right" if left else "left",
        )


def _slanted(axes: Axes, text: str, slope: float, top: float, taken: list[float], aspect: float) -> None:
    """Writes text along the memory roof, at the start of its visible part or, if that is crowded, at its end.

    `taken` holds the intensities of everything drawn.
    """
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    start, end = max(x0, y0 / slope) * 1.15, min(x1, top / slope) / 1.15
    middle = np.sqrt(start * end)
    late = sum(x < middle for x in taken) > sum(middle <= x <= end for x in taken)
    angle = np.degrees(np.arctan(aspect * np.log10(x1 / x0) / np.log10(y1 / y0)))
    at = (
        end / 2 if late else start
    )  # half of `end` leaves room for the label of the compute roof at the ridge
    axes.annotate(
        text,
        (at, at * slope),
        (-4, 5),
        textcoords="offset points",
        rotation=angle,
        rotation_mode="anchor",
        ha="right" if late else "left",
    )
