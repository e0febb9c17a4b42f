"""Draw a comparison: the change of each case with its interval, over the band of gaps that do not count."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from warplog.core.numbers import signed_percent
from warplog.figures.shared import style
from warplog.figures.shared.labels import FAINT, INK, fit, gap_note, legend_above, number, row_in, text_column
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.judge.comparison import Comparison, Row
from warplog.judge.samples import REST

TITLE = "Time of each case"
NOTE = (
    "points: change of the median time at rest, or of the sustained time; lines: the gaps from run to run that the"
    " same code shows with p = 0.002; grey: gaps that the same code shows from run to run, which do not count"
)
MOST_ROWS = 70
# Shape and colour both show the direction; markers without a claimed difference are hollow.
STYLES = {
    "SLOWER": ("^", "#b2182b", "#b2182b"),
    "FASTER": ("v", "#2166ac", "#2166ac"),
    "SAME": ("o", "white", INK),
    "AMBIGUOUS": ("D", "white", "#b8860b"),
}


def save(comparison: Comparison, png: Path, svg: Path) -> None:
    """Draws the comparison to both files."""
    style.save(draw(comparison), png, svg)


def shown(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows that fit on a page: all, else those that are not SAME, else the largest changes of these."""
    if len(rows) <= MOST_ROWS:
        return list(rows)
    changed = [row for row in rows if row.word != "SAME"]
    largest = sorted(changed, key=_size, reverse=True)[:MOST_ROWS]
    return [row for row in changed if row in largest]


@styled
def draw(comparison: Comparison) -> Figure:
    """Draws one row per case, grouped by variant: change in percent with interval, A's time and verdict."""
    rows = shown(comparison.rows)
    left_out = len(comparison.rows) - len(rows)
    note = NOTE + (f"; {left_out} cases with smaller changes are only in the CSV" if left_out else "")
    look = Look(" · ".join([comparison.gpu, *comparison.summary().splitlines()]))
    figure = new_figure(TITLE, 0.8 + row_in() * max(len(rows), 1), note, look)
    axes = figure.add_subplot()
    _rows(axes, rows)
    for place, row in enumerate(rows):
        if row.verdict is None:
            gap_note(axes, place, f"{row.word}: {row.reason}")
            continue
        _point(axes, place, row)
    axes.axvline(0, color=INK, lw=0.9, zorder=0.9)
    axes.set_xlim(*_limits(rows))
    axes.set_xlabel("change in time of B against A (%); right: slower")
    before = [f"{number(row.verdict.before_us)} µs" if row.verdict else "" for row in rows]
    change = [signed_percent(row.verdict.ratio) if row.verdict else "" for row in rows]
    end = text_column(axes, "A", before, 0.08, "right")
    end = text_column(axes, "change", change, end, "right")
    strong = [place for place, row in enumerate(rows) if row.word in ("SLOWER", "FASTER")]
    text_column(axes, "verdict", [row.word if row.verdict else "" for row in rows], end, strong=strong)
    marks: list[Line2D | Patch] = [_mark(word) for word in STYLES]
    legend_above(axes, [*marks, Patch(color=FAINT, label="does not count")])
    return figure


def _rows(axes: Axes, rows: Sequence[Row]) -> None:
    """Labels the rows from the top down: the variant in its first row, the case in each; lines separate variants."""
    names = [f"{row.family}/{row.variant}" for row in rows]
    first = [place for place, name in enumerate(names) if place == 0 or names[place - 1] != name]
    labels = [(f"{fit(n, 1.9)}  " if p in first else "") + _case(rows[p]) for p, n in enumerate(names)]
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(max(len(labels), 1) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    for place in first[1:]:
        axes.axhline(place - 0.5, color=FAINT, lw=0.6)
    axes.spines["left"].set_visible(False)


def _case(row: Row) -> str:
    return fit(row.case, 0.8) + ("" if row.regime == REST else f" ({row.regime})")


def _point(axes: Axes, place: int, row: Row) -> None:
    verdict = row.verdict
    assert verdict is not None
    low, ratio, high = (100 * (x - 1) for x in (verdict.low, verdict.ratio, verdict.high))
    wide = 100 * verdict.floor
    axes.barh(place, 2 * wide, left=-wide, height=0.8, color=FAINT, lw=0, zorder=0.5)
    marker, face, edge = STYLES[row.word]
    axes.plot([low, high], [place, place], color=edge, lw=1.2, solid_capstyle="butt")
    axes.plot(ratio, place, marker=marker, mfc=face, mec=edge, ms=5, ls="", mew=1.0)


def _mark(word: str) -> Line2D:
    marker, face, edge = STYLES[word]
    return Line2D([], [], marker=marker, mfc=face, mec=edge, color=edge, ms=5, lw=1.2, label=word)


def _limits(rows: Sequence[Row]) -> tuple[float, float]:
    """Returns axis limits that hold all points, the intervals of FASTER and SLOWER, and 90 % of the grey bands."""
    verdicts = [row.verdict for row in rows if row.verdict]
    if not verdicts:
        return -1.0, 1.0
    ratios = [100 * (v.ratio - 1) for v in verdicts]
    band = float(np.quantile([100 * v.floor for v in verdicts], 0.9))
    claimed = [row.verdict for row in rows if row.verdict and row.word in ("SLOWER", "FASTER")]
    ratios += [100 * (end - 1) for verdict in claimed for end in (verdict.low, verdict.high)]
    low, high = min(*ratios, -band), max(*ratios, band)
    return low - 0.08 * (high - low), high + 0.08 * (high - low)


def _size(row: Row) -> float:
    return abs(float(np.log(row.verdict.ratio))) if row.verdict else np.inf
