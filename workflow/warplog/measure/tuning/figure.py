"""Heat map of a search: the best setting for each pair of parameter values."""

from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from warplog.figures.shared.labels import INK, MUTED
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.records.requested.tune import Setting, Tune

_CELL_IN = 0.3
_LOWEST = 40  # percent; lower values have the same colour
_NOTE = (
    "each cell: the fastest setting with these two values, in percent of the winner's speed (outlined);"
    " empty: no valid setting has a time"
)


@styled
def draw(record: Tune) -> Figure:
    """Draws a triangle of heat maps from a search's record, one per pair of parameters."""
    names = [n for n in record.parameters if len(values_of(record, n)) > 1] or record.parameters[:1]
    rows = max(len(names) - 1, 1)
    height = _CELL_IN * sum(len(values_of(record, n)) for n in names[1:]) + 0.42 * rows
    height = max(height, 1.0) if record.ranking else 0.6
    figure = new_figure(_title(record), height, _NOTE, Look(_stamp(record)))
    if not record.ranking:
        figure.add_subplot().set_axis_off()
        figure.axes[0].text(0.5, 0.5, record.reason, ha="center", va="center", color=MUTED, wrap=True)
        return figure
    if len(names) == 1:
        _panel(figure.add_subplot(), record, names[0], names[0], True, True)
        return figure
    ratios = {
        "width_ratios": [len(values_of(record, n)) for n in names[:-1]],
        "height_ratios": [len(values_of(record, n)) for n in names[1:]],
    }
    panels = figure.subplots(rows, rows, squeeze=False, gridspec_kw=ratios)
    for column, row in combinations(range(len(names)), 2):
        axes = panels[row - 1][column]
        _panel(axes, record, names[column], names[row], row == len(names) - 1, column == 0)
    for row in range(rows):
        for column in range(row + 1, rows):
            panels[row][column].set_axis_off()
    figure.align_ylabels()
    return figure


def best_of_pair(record: Tune, across: str, down: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Returns percent of the winner's speed per value of `down` (rows) and `across` (columns); NaN without a time."""
    columns, rows = values_of(record, across), values_of(record, down)
    grid = np.full((len(rows), len(columns)), np.nan)
    best_us = _best(record).score_us or 0.0
    for entry in record.settings:
        if entry.score_us is not None:
            at = rows.index(entry.parameters[down]), columns.index(entry.parameters[across])
            grid[at] = np.fmax(grid[at], 100.0 * best_us / entry.score_us)
    return grid


def values_of(record: Tune, name: str) -> list[int]:
    """Returns the values of a parameter in the valid settings, in ascending order."""
    return sorted({entry.parameters[name] for entry in record.settings})


def _best(record: Tune) -> Setting:
    return next(entry for entry in record.settings if entry.setting == record.ranking[0])


def _panel(axes: Axes, record: Tune, across: str, down: str, is_lowest: bool, is_first: bool) -> None:
    import seaborn as sns  # takes 0.7 s with scipy.stats, and only heat maps need it

    grid = best_of_pair(record, across, down)
    sns.heatmap(
        grid,
        ax=axes,
        vmin=_LOWEST,
        vmax=100,
        cmap="viridis",
        annot=True,
        fmt=".0f",
        cbar=False,
        linewidths=0.8,
        linecolor="white",
        annot_kws={"size": 7},
        xticklabels=values_of(record, across) if is_lowest else False,
        yticklabels=values_of(record, down) if is_first else False,
    )
    winner = _best(record).parameters
    place = values_of(record, across).index(winner[across]), values_of(record, down).index(winner[down])
    axes.add_patch(Rectangle(place, 1, 1, fill=False, ec=INK, lw=1.6, clip_on=False))
    axes.tick_params(length=0, labelrotation=0)
    axes.set_xlabel(across if is_lowest else "")
    axes.set_ylabel(down if is_first else "")


def _title(record: Tune) -> str:
    subject = f"{record.family}/{record.variant}: best setting"
    if not record.ranking:
        return f"{subject} · no setting has a time"
    entry = _best(record)
    setting = " ".join(f"{name} {value}" for name, value in entry.parameters.items())
    return f"{subject} · {setting} · {entry.score_us:.4g} µs"


def _stamp(record: Tune) -> str:
    measured = f"{record.seen} of {len(record.settings)} settings measured"
    case = f"case {', '.join(record.cases)}"
    parts = (record.provenance.gpu_name, record.campaign, case, "cold times", measured)
    return " · ".join(part for part in parts if part)
