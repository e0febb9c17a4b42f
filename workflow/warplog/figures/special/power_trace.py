"""How do clock, power and speed change during a long run, and how do they depend on the data?"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from warplog.core import columns
from warplog.core.numbers import rate_unit
from warplog.figures.shared.labels import (
    INK,
    fit,
    is_narrow,
    legend_above,
    legend_rows,
    line_in,
    number,
)
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.tables.files import ORIGIN_COLUMNS, as_rows
from warplog.tables.view import FigureTables

NEEDS = ("listed",)
TITLE = "Clock, power and speed of back-to-back launches"
NOTE = (
    "clock and power as reported by the driver (power is averaged by the board), speed from the times of the "
    "launches; axes do not begin at zero; energy: whole run, from the board's energy counter if it has one"
)
SWINGS = (
    "; dips: the controller of the power limit lets power swing around the limit with a period of about a second, and "
    "clock and speed with it"
)
PANELS = {"sm_mhz": ("SM clock", "MHz"), "power_w": ("board power", "W"), "gflops": ("speed", "GFLOP/s")}
# Colour and dashes of the cases, in order: colours of Okabe and Ito, safe for colour-blind readers.
LOOKS = [
    ("#D55E00", (1, 0)), ("#0072B2", (5, 1.5)), ("#009E73", (1.2, 1.2)), ("#CC79A7", (5, 1.5, 1.2, 1.5)),
    ("#E69F00", (3, 1)), ("#000000", (1, 0)), ("#56B4E9", (8, 1.5)), ("#8C8C8C", (2, 3)),
]  # fmt: skip
MOST_VARIANTS = 4


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per variant, case and sample of the trace, with the case's energy; none without a trace."""
    kept = ["family", "variant", "order", "is_baseline", "status", "gap"]
    trace = tables.power_trace
    pieces = []
    for row in as_rows(tables.ladder(tables.case)):
        own = trace[trace["variant"] == row["variant"]] if len(trace) else trace
        shared = {k: row[k] for k in [*kept[:-1], *ORIGIN_COLUMNS]}
        gap = row["gap"] or ("" if len(own) else "no trace recorded")
        if gap:
            pieces.append(pd.DataFrame([shared | {"gap": gap}]))
            continue
        cases = tables.measurements[tables.measurements["variant"] == row["variant"]].set_index("case")
        samples = own[["case", "time_s", *PANELS, "temperature_c", "throttle_reasons"]]
        about = {name: samples["case"].map(cases[name]) for name in ("size", "pj_per_flop") if name in cases}
        pieces.append(samples.assign(**about, gap="", **shared))
    shown = [*kept, "case", "size", "time_s", *PANELS, "temperature_c", "throttle_reasons", "pj_per_flop"]
    rows = pd.concat(pieces, ignore_index=True).reindex(columns=[*shown, *ORIGIN_COLUMNS])
    return rows if (rows["gap"] == "").any() else rows.iloc[:0]


def _finding(data: pd.DataFrame) -> str:
    """Returns where the energy per FLOP depends most on the data, of one variant and size; TITLE if none is known."""
    rows = data.dropna(subset=["pj_per_flop"]).astype({"pj_per_flop": float}).sort_values("pj_per_flop")
    spans = [as_rows(own.iloc[[0, -1]]) for _, own in rows.groupby(["variant", "size"])]
    pairs = [
        (columns.number(most, "pj_per_flop"), columns.number(least, "pj_per_flop"), most, least)
        for least, most in spans
    ]
    high, low, most, least = max(pairs, key=lambda pair: pair[0] / pair[1], default=(0.0, 0.0, {}, {}))
    if not high > low:
        return TITLE
    ends = f"{number(high)} pJ with {most['case']}, {number(low)} pJ with {least['case']}"
    return f"Energy per FLOP of {most['variant']}: {ends}"


def swings(data: pd.DataFrame) -> bool:
    """Returns whether the power limit lowered the clock in a sample."""
    return bool(data["throttle_reasons"].fillna("").astype(str).str.contains("power").any())


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws one column per variant with a trace and one line per case; below, the energy per FLOP."""
    variants = data.drop_duplicates("variant").reset_index(drop=True)
    title = f"{_finding(data)} · {variants.iloc[0]['family']}"
    good = list(variants.loc[variants["gap"] == "", "variant"])[:MOST_VARIANTS]
    gaps = variants[variants["gap"] != ""]
    others = "".join(f"; {v}: {fit(str(g), 2.5)}" for v, g in zip(gaps["variant"], gaps["gap"], strict=True))
    others = SWINGS * swings(data) + others
    cases = list(dict.fromkeys(data.loc[data["gap"] == "", "case"]))
    lines = legend_rows(cases)
    figure = new_figure(title, 5.4 + line_in(), NOTE + others, look)
    grid = figure.subplots(len(PANELS) + 1, len(good), squeeze=False, sharey="row")
    looks = {case: LOOKS[i % len(LOOKS)] for i, case in enumerate(cases)}
    for column, variant in enumerate(good):
        rows = data[(data["variant"] == variant) & (data["gap"] == "")]
        for axes, (name, (label, unit)) in zip(grid[:, column], PANELS.items(), strict=False):
            shown_unit, factor = rate_unit(unit, data[name])
            _lines(axes, rows, name, factor, looks)
            axes.set_ylabel(f"{label}\n({shown_unit})" if column == 0 else "")
            axes.tick_params(labelbottom=name == list(PANELS)[-1])
        grid[len(PANELS) - 1, column].set_xlabel(
            "time (s)" if is_narrow() else "time since the run's first launch (s)"
        )
        _energy(grid[-1, column], rows, looks)
    grid[-1, 0].set_ylabel("energy\n(pJ/FLOP)")
    legend = [Line2D([], [], color=c, dashes=d, label=case) for case, (c, d) in looks.items()]
    legend_above(grid[0, 0], legend)
    for axes, variant in zip(
        grid[0], good, strict=True
    ):  # blank lines above the name make room for the legend
        axes.set_title("\n" * lines + " \n" + fit(variant, 3.0), loc="left", pad=4)
    figure.align_ylabels(grid[:, 0])
    return figure


def _lines(
    axes: Axes, rows: pd.DataFrame, name: str, factor: float, looks: dict[str, tuple[str, tuple[float, ...]]]
) -> None:
    for case, (colour, dashes) in looks.items():
        own = rows[rows["case"] == case].sort_values("time_s")
        axes.plot(own["time_s"], own[name] * factor, color=colour, dashes=dashes, lw=1.2)
    axes.grid(axis="y")


def _energy(axes: Axes, rows: pd.DataFrame, looks: dict[str, tuple[str, tuple[float, ...]]]) -> None:
    energy = rows.groupby("case")["pj_per_flop"].first().astype(float)
    own = [case for case in looks if case in energy]
    axes.bar(own, energy[own].fillna(0), color=[looks[case][0] for case in own], width=0.7)
    for place, value in enumerate(energy[own]):
        axes.annotate(
            number(value),
            (place, np.nan_to_num(value)),
            (0, 2),
            textcoords="offset points",
            ha="center",
            color=INK,
            rotation=90 if is_narrow() else 0,
        )
    axes.margins(y=0.5 if is_narrow() else 0.25)
    axes.set_xticks([])
