"""Text in figures: text width and wrapping, number formats, side labels, gap notes, columns beside bars."""

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ft2font import LoadFlags
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

TITLE_PT = 10.0
_NARROW_IN = 5.0
_FONT_PT = 8.0  # the size for which heights and widths below are given
INK, MUTED, FAINT = "#222222", "#595959", "#d9d9d9"
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


# The theme sets width and font of the figures (shared.style); these functions read them there.


def width_in() -> float:
    """Returns the width of a figure in inches."""
    return float(mpl.rcParams["figure.figsize"][0])


def is_narrow() -> bool:
    """Returns whether a figure has the width of one column of a page, where only the main columns have room."""
    return width_in() < _NARROW_IN


def font_pt() -> float:
    """Returns the font size in points."""
    return float(mpl.rcParams["font.size"])


def line_in() -> float:
    """Returns the height of a line of text in inches."""
    return 0.155 * font_pt() / _FONT_PT


def row_in() -> float:
    """Returns the height of a row of bars in inches."""
    return 0.225 * font_pt() / _FONT_PT


def name_in() -> float:
    """Returns the maximum width of a variant's name in inches."""
    return min(1.8, 0.42 * width_in())


def _advance_in(character: str, bold: bool = False) -> float:
    return _unscaled_in(mpl.rcParams["font.sans-serif"][0], bold, character) * font_pt()


@functools.cache
def _unscaled_in(family: str, bold: bool, character: str) -> float:
    """Returns the advance of a character in inches per point of font size."""
    font = get_font(findfont(FontProperties(family=family, weight="bold" if bold else "normal")))
    font.set_size(100, 72)
    advance = font.load_char(ord(character), flags=LoadFlags.NO_HINTING).linearHoriAdvance
    return float(advance) / 65536 / 72 / 100


def text_width_in(text: str, bold: bool = False) -> float:
    """Returns the width of a line in inches at the figures' font size (sum of the characters' advances)."""
    return sum(_advance_in(character, bold) for character in text.strip())


def wrap(text: str, width: float | None = None, bold: bool = False) -> list[str]:
    """Splits `text` between words into lines of at most `width` inches, by default the figure's."""
    # The rendered text is up to 2 % wider than the sum of its advances.
    width = 0.98 * width_in() - 0.1 if width is None else width
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width_in(longer, bold) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def fit(text: str, width: float) -> str:
    """Returns `text`, shortened with an ellipsis if it is wider than `width` inches."""
    if text_width_in(text) <= width:
        return text
    ends = np.cumsum([_advance_in(character) for character in text])
    kept = int(np.searchsorted(ends, width - _advance_in("…"), side="right"))
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
    from scipy.optimize import isotonic_regression  # takes 0.3 s, and pages import this module, too

    if not len(targets):
        return []
    ideal = np.asarray(targets, dtype=float)
    order, steps = np.argsort(ideal, kind="stable"), gap * np.arange(ideal.size)
    level = isotonic_regression(ideal[order] - steps).x
    result = np.empty(ideal.size)
    result[order] = np.clip(level, low, max(low, high - steps[-1])) + steps
    return [float(v) for v in result]


def plot_width_in(labels: Sequence[SideLabel]) -> float:
    """Returns the approximate width in inches of axes that have these labels beside them, or below if narrow."""
    labels_in = 0.0 if is_narrow() else max(text_width_in(label.text) for label in labels)
    return width_in() - 0.9 - labels_in


def side_labels(axes: Axes, labels: Sequence[SideLabel], height: float, width: float) -> None:
    """Writes labels to the right of the axes, in the order of their points and without overlap; below if narrow.

    `height` and `width` in inches are the approximate size of the axes. Labels without a point are placed at the
    bottom, in italics; from points in the left half no leader line is drawn, which would pass for data. Set the limits
    and scales of the axes first.
    """
    if is_narrow():
        _labels_below(axes, labels)
        return
    to_fraction = axes.transData + axes.transAxes.inverted()
    has_point = [np.isfinite(label.x) and np.isfinite(label.y) for label in labels]
    points = [
        to_fraction.transform((label.x, label.y)) if ok else (0.0, -1.0 - rank)
        for rank, (label, ok) in enumerate(zip(labels, has_point, strict=True))
    ]
    start, sample = 1 + 0.2 / width, 0.26 / width
    places = spread([float(up) for _, up in points], line_in() / height, 0.0, 1.0)
    for label, ok, (across, _), place in zip(labels, has_point, points, places, strict=True):
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
        if across > 0.5:
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
            markevery=[1],
            **drawn_as(label.colour, label.marker, label.dashes),
        )


def drawn_as(colour: str, marker: str, dashes: tuple[float, ...] | None) -> dict[str, Any]:
    """Returns how a variant's line and markers are drawn; no line if `dashes` is None."""
    line = "" if dashes is None else (0, dashes) if dashes else "-"
    return {
        "color": colour, "marker": marker, "linestyle": line,
        "markeredgecolor": "white", "markeredgewidth": 0.5, "markersize": 8 if marker == "*" else 5,
    }  # fmt: skip


def _labels_below(axes: Axes, labels: Sequence[SideLabel]) -> None:
    """Writes labels between axes and notes, highest point first, with samples but without leader lines.

    The figure becomes taller by their height.
    """
    order = sorted(labels, key=lambda label: -np.nan_to_num(label.y, nan=-np.inf))
    handles = [
        Line2D([], [], label=label.text, **drawn_as(label.colour, label.marker, label.dashes))
        for label in order
    ]
    figure = axes.get_figure(root=True)
    assert figure is not None
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    rows = legend_rows([label.text for label in order])
    room_in, notes_in = line_in() * 1.15 * rows + 0.1, line_in() * len(figure.get_supxlabel().splitlines())
    figure.set_figheight(figure.get_figheight() + room_in)
    # The layout has room at the bottom for the higher of a legend and notes, not for both.
    room = room_in / figure.get_figheight()
    engine.set(rect=(0, room, 1, 1 - room))
    legend = figure.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0.0, notes_in), bbox_transform=figure.dpi_scale_trans,
        ncols=-(-len(order) // rows), frameon=False, handlelength=1.8, columnspacing=1.0, borderpad=0.1,
        labelspacing=0.25,
    )  # fmt: skip
    legend.set_in_layout(False)


def bar_rows(axes: Axes, names: Iterable[object], baseline: Iterable[object]) -> None:
    """Sets up one row per variant from the top down, labelled with its name; the baseline is marked."""
    labels = [_named(str(name), bool(is_baseline)) for name, is_baseline in zip(names, baseline, strict=True)]
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)


def _named(name: str, is_baseline: bool) -> str:
    """Returns a variant's name; the baseline is marked if there is room, and by its hatching anyway."""
    marked = f"{fit(name, name_in())} (baseline)"
    return (
        marked
        if is_baseline and not (is_narrow() and text_width_in(marked) > name_in())
        else fit(name, name_in())
    )


def gap_notes(axes: Axes, gaps: Iterable[str]) -> None:
    """Writes a note into each row whose gap is not ""."""
    for row, gap in enumerate(gaps):
        if gap:
            gap_note(axes, row, gap)


def gap_note(axes: Axes, row: int, text: str) -> None:
    """Writes into an empty row, from the left edge of the axes, why nothing is drawn there."""
    axes.annotate(
        fit(text, 0.47 * width_in()),
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


def cells(rows: pd.DataFrame, column: str, text: Callable[[float], str]) -> list[str]:
    """Returns the numbers of a column as text: "n/a" if one is missing, "" in a row with a gap."""
    shown = zip(rows[column].astype(float), rows["gap"], strict=True)
    return ["" if gap else text(value) if np.isfinite(value) else "n/a" for value, gap in shown]


def legend_rows(labels: Sequence[str]) -> int:
    """Returns how many rows a legend with these labels requires at the figure's width."""
    cells = [text_width_in(label) + 0.5 * font_pt() / _FONT_PT for label in labels]
    if sum(cells) <= width_in():
        return 1
    columns = max(1, int(width_in() / max(cells)))
    return -(-len(labels) // columns)


def header_in(figure: Figure) -> float:
    """Returns the height of the figure's title in inches."""
    title = figure.get_suptitle()
    return 0.08 + 0.19 * (title.count("\n") + 1) if title else 0.03


def legend_above(axes: Axes, handles: Sequence[Artist]) -> None:
    """Draws a legend at the left edge, between the figure's title and the column headers; it makes the figure taller.

    One row of it is part of the figure's height already.
    """
    rows = legend_rows([str(handle.get_label()) for handle in handles])
    axes.set_title(" ", pad=72 * line_in() * rows + 10)  # reserves the space
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.set_figheight(figure.get_figheight() + line_in() * (rows - 1))
    legend = figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, 1 - header_in(figure) / figure.get_figheight()),
        ncols=-(-len(handles) // rows),
        frameon=False,
        handlelength=1.6,
        columnspacing=1.2,
        borderpad=0.1,
        labelspacing=0.25,
    )
    legend.set_in_layout(False)
