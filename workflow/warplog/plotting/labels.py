"""Text in figures: text width and wrapping, number formats, side labels, gap notes, columns beside bars."""

import functools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ft2font import LoadFlags
from matplotlib.patches import Rectangle
from scipy.optimize import isotonic_regression

WIDTH_IN = 7.2  # two columns of a printed page
FONT_PT = 8.0
LINE_IN = 0.155  # height of a line of text
ROW_IN = 0.225  # height of a row of bars
NAME_IN = 1.8  # maximum width of a variant's name
GAP_IN = 3.4  # maximum width of the note in an empty row
INK, MUTED, FAINT = "#222222", "#595959", "#d9d9d9"
FONT = "DejaVu Sans"
ON_PAPER = {"fc": "white", "ec": "none", "pad": 0.8, "alpha": 0.75}  # background of text that crosses lines


@dataclass(frozen=True)
class SideLabel:
    """A label in the right margin with a leader line to the point (x, y) in data units; no point if x is NaN.

    A sample of the marker, and of the line unless `dashes` is None, precedes the text.
    """

    x: float
    y: float
    text: str
    colour: str = MUTED
    marker: str = ""
    dashes: tuple[float, ...] | None = None


@functools.cache
def _advance_in(character: str) -> float:
    font = get_font(findfont(FontProperties(family=FONT)))
    font.set_size(FONT_PT, 72)
    return float(font.load_char(ord(character), flags=LoadFlags.NO_HINTING).linearHoriAdvance) / 65536 / 72


def text_width_in(text: str) -> float:
    """Returns the width of a line in inches at the figures' font size (sum of the characters' advances)."""
    return sum(map(_advance_in, text.strip()))


def wrap(text: str, width_in: float = WIDTH_IN - 0.15) -> list[str]:
    """Splits `text` between words into lines of at most `width_in` inches."""
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width_in(longer) <= width_in:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def fit(text: str, width_in: float) -> str:
    """Returns `text`, shortened with an ellipsis if it is wider than `width_in` inches."""
    if text_width_in(text) <= width_in:
        return text
    ends = np.cumsum([_advance_in(character) for character in text])
    kept = int(np.searchsorted(ends, width_in - _advance_in("…"), side="right"))
    return text[:kept].rstrip() + "…"


def number(value: float) -> str:
    """Formats a number with at least three digits and separated thousands; "n/a" for NaN."""
    if not np.isfinite(value):
        return "n/a"
    if value == 0 or abs(value) >= 99.95:
        return f"{value:,.0f}".replace(",", "\u2009")
    digits = max(0, 2 - int(np.floor(np.log10(abs(value)))))
    return f"{value:.{min(digits, 6)}f}"


def tick(value: float) -> str:
    """Formats an axis tick without superfluous digits and with separated thousands."""
    return f"{value:,.6g}".replace(",", "\u2009")


def spread(targets: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Returns positions `gap` apart, closest to `targets` (least squares), in [low, high] if they fit."""
    if not len(targets):
        return []
    ideal = np.asarray(targets, dtype=float)
    order, steps = np.argsort(ideal, kind="stable"), gap * np.arange(ideal.size)
    level = isotonic_regression(ideal[order] - steps).x
    result = np.empty(ideal.size)
    result[order] = np.clip(level, low, max(low, high - steps[-1])) + steps
    return [float(v) for v in result]


def side_labels(axes: Axes, labels: Sequence[SideLabel], height_in: float, width_in: float) -> None:
    """Writes labels to the right of the axes, in the order of their points and without overlap.

    `height_in` and `width_in` are the approximate size of the axes. Labels without a point are placed at the
    bottom, in italics. Set the limits and scales of the axes first.
    """
    to_fraction = axes.transData + axes.transAxes.inverted()
    has_point = [np.isfinite(label.x) and np.isfinite(label.y) for label in labels]
    heights = [
        float(to_fraction.transform((label.x, label.y))[1]) if ok else -1.0 - rank
        for rank, (label, ok) in enumerate(zip(labels, has_point, strict=True))
    ]
    start, sample = 1 + 0.2 / width_in, 0.26 / width_in
    places = spread(heights, LINE_IN / height_in, 0.0, 1.0)
    for label, ok, place in zip(labels, has_point, places, strict=True):
        arrow = {
            "arrowstyle": "-",
            "color": label.colour,
            "lw": 0.6,
            "alpha": 0.8,
            "shrinkA": 0,
            "shrinkB": 3,
        }
        axes.annotate(
            label.text,
            (label.x, label.y) if ok else (0, 0),
            (start + (sample * 1.25 if ok else 0), place),
            xycoords="data",
            textcoords="axes fraction",
            va="center",
            annotation_clip=False,
            color=INK if ok else MUTED,
            style="normal" if ok else "italic",
        )
        if not ok:
            continue
        axes.annotate(
            "",
            (label.x, label.y),
            (start, place),
            textcoords="axes fraction",
            annotation_clip=False,
            arrowprops=arrow,
        )
        axes.plot(
            [start, start + sample / 2, start + sample],
            [place] * 3,
            transform=axes.transAxes,
            clip_on=False,
            color=label.colour,
            marker=label.marker,
            markevery=[1],
            markeredgecolor="white",
            markeredgewidth=0.5,
            markersize=8 if label.marker == "*" else 5.5,
            linestyle="" if label.dashes is None else (0, label.dashes) if label.dashes else "-",
        )


def rectangles(axes: Axes) -> list[Rectangle]:
    """Returns the bars of the axes in the order in which they were drawn."""
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def bar_rows(axes: Axes, names: Iterable[object], baseline: Iterable[object]) -> None:
    """Sets up one row per variant from the top down, labelled with its name; the baseline is marked."""
    labels = [
        fit(str(n), NAME_IN) + (" (baseline)" if b else "") for n, b in zip(names, baseline, strict=True)
    ]
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.spines[["left", "right", "top"]].set_visible(False)


def gap_notes(axes: Axes, gaps: Iterable[str]) -> None:
    """Writes a note into each row whose gap is not ""."""
    for row, gap in enumerate(gaps):
        if gap:
            gap_note(axes, row, gap)


def gap_note(axes: Axes, row: int, text: str) -> None:
    """Writes into an empty row, from the left edge of the axes, why nothing is drawn there."""
    axes.annotate(
        fit(text, GAP_IN),
        (0, row),
        (4, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        style="italic",
        color=MUTED,
        annotation_clip=False,
    )


def text_column(
    axes: Axes,
    header: str,
    cells: Sequence[str],
    start_in: float,
    align: Literal["left", "right"] = "left",
    strong: Collection[int] = (),
) -> float:
    """Writes a column of text to the right of the axes, one cell per row, `start_in` inches from their edge.

    The rows in `strong` are set in bold. Returns the start of the next column in inches.
    """
    width = max(text_width_in(text) for text in [header, *cells]) * (1.1 if strong else 1.0)
    at = 72 * (start_in if align == "left" else start_in + width)
    axes.annotate(
        header,
        (1, 1),
        (at, 3),
        xycoords="axes fraction",
        textcoords="offset points",
        ha=align,
        va="bottom",
        color=MUTED,
        annotation_clip=False,
    )
    for row, text in enumerate(cells):
        axes.annotate(
            text,
            (1, row),
            (at, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha=align,
            va="center",
            weight="bold" if row in strong else "normal",
            annotation_clip=False,
        )
    return start_in + width + 0.14


def legend_above(axes: Axes, handles: Sequence[Artist], rows: int = 1) -> None:
    """Draws a legend of `rows` rows at the left edge, between the figure's title and the column headers."""
    axes.set_title(" ", pad=72 * LINE_IN * rows + 10)  # reserves the space
    figure = axes.get_figure(root=True)
    assert figure is not None
    legend = figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, 1 - 0.27 / figure.get_figheight()),
        ncols=-(-len(handles) // rows),
        frameon=False,
        handlelength=1.6,
        columnspacing=1.2,
        borderpad=0.1,
        labelspacing=0.25,
    )
    legend.set_in_layout(False)
