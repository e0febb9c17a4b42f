"""Which instructions does each variant execute besides its multiply-adds?"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from warplog.figures.shared.labels import (
    INK,
    bar_rows,
    cells,
    font_pt,
    gap_notes,
    is_narrow,
    legend_above,
    number,
    row_in,
    text_column,
)
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.tables.files import ORIGIN_COLUMNS
from warplog.tables.view import FigureTables

NEEDS = ("listed", "counters")
TITLE = "Instruction mix"
NOTE = "instructions that warps executed, by opcode (ncu, longest kernel of the case); per FFMA: all over the FFMAs"
COUNTERS = ["instructions_executed", "inst_ffma", "inst_lds", "inst_iadd3", "inst_imad"]
KINDS = {  # column: label, colour and hatch, which also differ in lightness
    "ffma_pct": ("FFMA", "#1b7f5c", ""),
    "lds_pct": ("LDS", "#f7d774", "...."),
    "integer_pct": ("IADD3 + IMAD", "#6aaed6", "////"),
    "rest_pct": ("other", "#ffffff", ""),
}


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per variant: executed instructions, the share of each kind, and all of them per FFMA."""
    rows = tables.counters(COUNTERS)
    whole = rows["instructions_executed"].where(rows["instructions_executed"] > 0)
    rows["gap"] = rows["gap"].where((rows["gap"] != "") | rows[COUNTERS].notna().all(axis=1), "n/a")
    rows["ffma_pct"] = 100 * rows["inst_ffma"] / whole
    rows["lds_pct"] = 100 * rows["inst_lds"] / whole
    rows["integer_pct"] = 100 * (rows["inst_iadd3"] + rows["inst_imad"]) / whole
    rows["rest_pct"] = 100 - rows["ffma_pct"] - rows["lds_pct"] - rows["integer_pct"]
    rows["per_ffma"] = whole / rows["inst_ffma"].where(rows["inst_ffma"] > 0)
    numbers = [*COUNTERS, *KINDS, "per_ffma"]
    rows[numbers] = rows[numbers].where(rows["gap"] == "")
    kept = ["family", "variant", "order", "is_baseline", "case", "kernel", "status", "gap"]
    return rows[[*kept, *numbers, *ORIGIN_COLUMNS]]


def _finding(data: pd.DataFrame) -> str:
    """Returns the variants with the fewest and the most multiply-adds among their instructions."""
    good = data.dropna(subset=["ffma_pct"])
    shares = dict(zip(good["variant"], good["ffma_pct"], strict=True))
    if len(shares) < 2:
        return TITLE
    ends = (min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__))
    least, most = (f"{shares[name]:.0f} % in {name}" for name in ends)
    return f"{TITLE}: FFMAs are {least}, {most}"


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws the share of each kind as stacked bars, and instructions per FFMA beside them."""
    first = data.iloc[0]
    title = f"{_finding(data)} · {first['family']}, case {first['case']}"
    figure = new_figure(title, 0.9 + row_in() * len(data), NOTE, look)
    axes = figure.add_subplot()
    bar_rows(axes, data["variant"], data["is_baseline"])
    _stacks(axes, data)
    axes.set_xlabel("share of the executed instructions (%)")
    axes.set_xlim(0, 100)
    gap_notes(axes, data["gap"])
    text_column(axes, "per FFMA", cells(data, "per_ffma", number), 0.08, "right")
    legend_above(axes, [Patch(fc=c, hatch=h, ec=INK, lw=0.5, label=name) for name, c, h in KINDS.values()])
    return figure


def _stacks(axes: Axes, data: pd.DataFrame) -> None:
    """Draws the bars; segments that are wide enough show their value."""
    start = np.zeros(len(data))
    least = 15.0 if is_narrow() else 7.5
    for column, (_, fill, hatch) in KINDS.items():
        length = data[column].fillna(0).to_numpy()
        some = np.flatnonzero(length > 0)
        axes.barh(some, length[some], left=start[some], height=0.74, color=fill, hatch=hatch, ec=INK, lw=0.5)
        for row in np.flatnonzero(length > least):
            axes.text(
                start[row] + length[row] / 2, int(row), f"{length[row]:.0f}", ha="center", va="center",
                color="white" if column == "ffma_pct" else INK, fontsize=font_pt(),
                bbox={"boxstyle": "square,pad=0.12", "fc": fill, "ec": "none"} if hatch else None,
            )  # fmt: skip
        start += length
