"""The common look of all figures: one colour per variant, sizes for print, the stamp, and saving."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import get_font_names
from matplotlib.text import Annotation, Text
from PIL import Image

from warplog.core.errors import WarplogError
from warplog.core.files import write_text
from warplog.core.schema import suggest
from warplog.core.text import listed
from warplog.figures.shared.highlight import of_family
from warplog.figures.shared.labels import INK, MUTED, TITLE_PT, header_in, line_in, width_in, wrap
from warplog.figures.shared.settings import WEB, Settings
from warplog.records import remarks as coded
from warplog.records.remarks import Remark, TimeRemark
from warplog.tables.view import FigureTables

P = ParamSpec("P")
T = TypeVar("T")

MOST_NAMED = 3  # variants with the same remark
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", "p", ">", "h")
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.5), (1.2, 1.2), (5, 1.5, 1.2, 1.5))
RAMP, RAMP_START, RAMP_END = "viridis", 0.84, 0.04  # from light to dark, so that the order also shows in grey
BASELINE_GREY = "#c4c4c4"
PNG_DPI = 200
FALLBACK_FONT = "DejaVu Sans"
THEME = {
    "font.family": "sans-serif", "figure.titlesize": TITLE_PT, "figure.titleweight": "bold",
    "text.color": INK, "axes.edgecolor": INK, "axes.labelcolor": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.linewidth": 0.7, "axes.axisbelow": True,
    "axes.spines.right": False, "axes.spines.top": False,
    "xtick.major.width": 0.7, "ytick.major.width": 0.7, "xtick.minor.width": 0.5, "ytick.minor.width": 0.5,
    "xtick.major.size": 3.0, "ytick.major.size": 3.0, "xtick.minor.size": 2.0, "ytick.minor.size": 2.0,
    "patch.edgecolor": "white", "patch.force_edgecolor": True, "lines.solid_capstyle": "round",
    "grid.color": "#e6e6e6", "grid.linewidth": 0.6, "lines.linewidth": 1.3, "lines.markersize": 4.5,
    "hatch.linewidth": 0.6, "figure.constrained_layout.use": True, "axes.unicode_minus": True,
    "text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "warplog",
    "pdf.fonttype": 42, "pdf.use14corefonts": False,
}  # fmt: skip


@dataclass(frozen=True)
class VariantStyle:
    """Style of one variant in every figure; colour is never the only cue."""

    colour: str
    marker: str
    dashes: tuple[float, ...]
    hatch: str = ""

    @property
    def edge(self) -> str:
        """Colour of outlines, hatching and thin lines."""
        return INK if self.hatch else self.colour


@dataclass(frozen=True)
class Look:
    """What draw() requires besides the data.

    Attributes:
        stamp: The first line below each figure: where its numbers come from.
        styles: Each variant's style.
        settings: How the figure fits its document.
        timing: How the times at the headline case were taken, for figures that show them.
        highlighted: The variants that figures with one series per variant show in colour; () for all.
    """

    stamp: str
    styles: Mapping[str, VariantStyle] = field(default_factory=dict)
    settings: Settings = WEB
    timing: str = ""
    highlighted: tuple[str, ...] = ()

    def coloured(self, variants: Iterable[str]) -> list[str]:
        """Returns those of the variants that are shown in colour; the others are grey."""
        names = list(dict.fromkeys(map(str, variants)))
        return [name for name in names if name in self.highlighted] or names

    def style(self, variant: str) -> VariantStyle:
        """Returns the variant's style; plain grey for a name that is not in the ladder."""
        return self.styles.get(variant, VariantStyle(MUTED, "o", ()))


def look(tables: FigureTables, settings: Settings = WEB) -> Look:
    """Returns the look of a family's figures, from its ladder and the origin of its measurements."""
    shown = tuple(of_family(tables))
    return Look(origin_line(tables), variant_styles(tables.variants), settings, timing_line(tables), shown)


def variant_styles(variants: pd.DataFrame) -> dict[str, VariantStyle]:
    """Returns a style per variant, based on its position `order` and the length `rungs` of the whole ladder.

    Because the whole ladder counts, a variant keeps its colour when others are left out. Later variants are
    darker, on a colour ramp of evenly decreasing lightness; the baseline is hatched grey at any position. The
    combination of marker and dashes repeats after 44 variants.
    """
    rungs = int(variants["rungs"].max())
    styles = {}
    for name, order, is_baseline in variants[["variant", "order", "is_baseline"]].itertuples(index=False):
        place = int(order)
        styles[str(name)] = (
            VariantStyle(BASELINE_GREY, "*", (), "/////") if is_baseline else ordered_style(place, rungs)
        )
    return styles


def ordered_style(place: int, count: int) -> VariantStyle:
    """Returns the style at this place of `count` that have an order: later ones are darker."""
    shade = mpl.colormaps[RAMP](RAMP_START + (RAMP_END - RAMP_START) * place / max(count - 1, 1))
    return VariantStyle(to_hex(shade), MARKERS[place % len(MARKERS)], DASHES[place % len(DASHES)])


def origin_line(tables: FigureTables) -> str:
    """Returns the stamp's first line: GPU, origin, campaign, clocks, and remarks on the variants."""
    rows = tables.measurements if len(tables.measurements) else tables.variants

    def all_of(column: str) -> str:
        values = sorted({str(v) for v in rows[column].dropna() if v}) if column in rows else []
        return " + ".join(values)

    parts = [
        all_of("gpu_name") or all_of("gpu") or "GPU unknown",
        f"{all_of('origin') or 'unknown'} campaign {all_of('campaign') or 'unknown'}",
    ]
    parts += [f"clocks {all_of('clocks')}"] if all_of("clocks") else []
    parts += remarks(tables.ladder(tables.case), about_timing=False)
    return " · ".join(parts)


def timing_line(tables: FigureTables) -> str:
    """Returns the mean SM clocks of the times at the headline case, and the remarks on how they were taken."""
    rows = tables.ladder(tables.case)
    clock = rows["sm_mhz"].dropna() if "sm_mhz" in rows else rows["order"].iloc[:0]
    low, high = (round(float(clock.min())), round(float(clock.max()))) if len(clock) else (0, 0)
    clocks = f"{low}–{high}" if low < high else f"{low}"
    parts = [f"mean SM clock {clocks} MHz"] if high else []
    facts = " · ".join([*parts, *remarks(rows, about_timing=True)])
    return f"at {tables.case}: {facts}" if facts else ""


def remarks(ladder: pd.DataFrame, about_timing: bool) -> list[str]:
    """Returns the remarks on rows with status ok, such as an outdated source, and the variants that have it.

    Either only those about how the times were taken are returned, or only the others. Remarks that differ only in
    their counts are one: "launches discarded: ... (tiled 3 of 80, naive 1 of 60)".
    """
    noted = ladder.loc[ladder["status"] == "ok", ["variant", "remarks"]]
    by_words: dict[str, list[tuple[str, Remark]]] = {}
    for variant, cell in noted.itertuples(index=False):
        for remark in coded.read(cell):
            if isinstance(remark, TimeRemark) == about_timing:
                by_words.setdefault(remark.uncounted(), []).append((str(variant), remark))
    return [
        _merged(words, having, len(ladder))
        for words, having in sorted(by_words.items(), key=lambda item: -len(item[1]))
    ]


def _which(variants: Sequence[str], whole: int) -> str:
    """Returns "all variants", "naive and tiled", or "naive, tiled and 7 more" of the variants with a remark."""
    if len(variants) == whole > 1:
        return "all variants"
    named = list(variants) if len(variants) <= MOST_NAMED + 1 else list(variants[:MOST_NAMED])
    named += [f"{len(variants) - MOST_NAMED} more"] if len(named) < len(variants) else []
    return listed(named)


def _merged(words: str, having: Sequence[tuple[str, Remark]], whole: int) -> str:
    """Returns the remark of several variants: "a: 1 sample ...", "launches discarded ... (b 3 of 80, a 1 of 60)"."""
    counts = {name: remark.counts() for name, remark in having}
    if len(set(counts.values())) == 1:
        each = "each " if len(having) > 1 and any(counts.values()) else ""
        return f"{_which(list(counts), whole)}: {each}{having[0][1].words()}"
    largest = sorted(counts, key=lambda name: -counts[name][0] / (counts[name][1:] or (1,))[0])
    named = largest if len(largest) <= MOST_NAMED + 1 else largest[:MOST_NAMED]
    listed = [f"{name} {' of '.join(map(str, counts[name]))}" for name in named]
    listed += [f"fewer in {len(having) - len(named)} more"] if len(named) < len(having) else []
    return f"{words} ({', '.join(listed)})"


def theme(settings: Settings = WEB) -> AbstractContextManager[None]:
    """Returns a context with the rcParams of all figures, on top of matplotlib's own.

    Raises:
        WarplogError: if the font is not installed.
    """
    if settings.font != FALLBACK_FONT and settings.font not in get_font_names():
        suggestion = suggest(settings.font, sorted(get_font_names()))
        raise WarplogError(f"figures.font: {settings.font!r} is not installed; {suggestion}")
    size = settings.font_pt
    sizes = (
        "font.size",
        "axes.labelsize",
        "axes.titlesize",
        "legend.fontsize",
        "xtick.labelsize",
        "ytick.labelsize",
    )
    parameters: Any = {**THEME, **dict.fromkeys(sizes, size)}
    parameters["font.sans-serif"] = list(dict.fromkeys((settings.font, FALLBACK_FONT)))
    parameters["figure.figsize"] = (settings.width_in, settings.width_in)  # labels.width_in reads it
    return mpl.rc_context(parameters)


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Decorates a draw function to run under the theme of its Look, without changing matplotlib's global settings."""

    @functools.wraps(draw)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        looks = (value for value in (*args, *kwargs.values()) if isinstance(value, Look))
        with theme(next(looks, Look("")).settings):
            return draw(*args, **kwargs)

    return wrapped


def new_figure(title: str, body_in: float, note: str, look: Look, timed: bool = False) -> Figure:
    """Returns an empty figure with the title above and the stamp and a note below, unless the settings omit them.

    `body_in` is the height for axes and their labels in inches. `note` explains how to read the figure. The stamp says
    how the times at the headline case were taken if the figure shows them (`timed`). The figure's label holds title,
    stamp and note, for a caption.
    """
    stamp = " · ".join(filter(None, (look.stamp, look.timing if timed else "")))
    figure = Figure(figsize=(width_in(), body_in + 0.1))
    FigureCanvasAgg(figure)
    figure.set_label("\n".join((title, stamp, note)))
    if look.settings.titles:
        lines = [*wrap(stamp), *wrap(note)]
        heading = wrap(title, (0.98 * width_in() - 0.1) * mpl.rcParams["font.size"] / TITLE_PT, bold=True)
        figure.suptitle("\n".join(heading), x=0.008, ha="left")
        figure.set_figheight(body_in + 0.08 + header_in(figure) + line_in() * len(lines))
        shown: Any = {"color": MUTED, "linespacing": 1.25, "fontsize": mpl.rcParams["font.size"]}
        figure.supxlabel("\n".join(lines), x=0.008, ha="left", **shown)
    return figure


def variant_bars(axes: Axes, rows: pd.DataFrame, column: str, height: float, look: Look) -> None:
    """Draws a bar per row in the style of its variant, from the top down; none for NaN."""
    styles = [look.style(name) for name in rows["variant"]]
    shown: Any = {"color": [own.colour for own in styles], "hatch": [own.hatch for own in styles]}
    axes.barh(range(len(styles)), rows[column], height, ec=INK, lw=0.5, **shown)


def save(figure: Figure, *files: Path, settings: Settings = WEB) -> None:
    """Writes a figure to files whose suffixes name the formats: .png, .svg, .pdf, or .txt for title, stamp and note.

    The same figure gives the same bytes (no date, fixed ids). Text stays text in the SVG, and the PDF has its fonts
    embedded. The PNG has 256 colours, which is visually identical and a third of the size. With dark settings the
    figure's colours are changed.

    Raises:
        OSError: if a file cannot be written.
    """
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
    with theme(settings):
        if layout := figure.get_layout_engine():
            layout.execute(figure)
        figure.set_layout_engine("none")  # one layout and one drawing per file; savefig would draw five times
        if settings.dark:
            figure.draw_without_rendering()  # makes the ticks
            darken(figure)
        for path in files:
            _WRITERS[path.suffix](figure, path)


def _write_png(figure: Figure, path: Path) -> None:
    figure.set_dpi(PNG_DPI)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    drawn = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    few = drawn.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(path, "PNG", dpi=(PNG_DPI, PNG_DPI))


def _write_svg(figure: Figure, path: Path) -> None:
    """Writes the SVG; axes stand at rounded positions meanwhile, since ids in it are hashes of all their digits.

    The last digits of what the layout's solver returns depend on addresses, which differ per process.
    """
    places = [(axes, axes.get_position(original=True)) for axes in figure.axes]
    for axes, place in places:
        axes.set_position(tuple(round(number, 9) for number in place.bounds))
    canvas: Any = FigureCanvasSVG(figure)
    canvas.print_svg(path, metadata={"Date": None, "Creator": "warplog"})
    for axes, place in places:
        axes.set_position(place)


def _write_pdf(figure: Figure, path: Path) -> None:
    from matplotlib.backends.backend_pdf import (
        FigureCanvasPdf,
    )  # loads the library for fonts, which takes 0.3 s

    canvas: Any = FigureCanvasPdf(figure)
    title, *notes = str(figure.get_label()).split("\n")
    about = {
        "Title": title,
        "Subject": " ".join(notes),
        "Creator": "warplog",
        "Producer": None,
        "CreationDate": None,
    }
    canvas.print_pdf(path, metadata=about)


_WRITERS: Mapping[str, Callable[[Figure, Path], None]] = {
    ".png": _write_png, ".svg": _write_svg, ".pdf": _write_pdf,
    ".txt": lambda figure, path: write_text(path, f"{figure.get_label()}\n"),
}  # fmt: skip
_COLOURED = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")


def darken(figure: Figure) -> None:
    """Inverts the lightness of everything in the figure, so that ink becomes light and paper dark; hues stay."""
    artists = [part for artist in figure.findobj() for part in _parts(artist)]
    changes = [
        (getattr(artist, f"set_{name}"), getattr(artist, f"get_{name}")())
        for artist in artists
        for name in _COLOURED
        if hasattr(artist, f"get_{name}") and hasattr(artist, f"set_{name}")
    ]
    for change, colour in changes:  # after all were read: some are derived from others
        several = isinstance(colour, np.ndarray) and colour.ndim > 1
        if several or to_rgba(colour)[3]:  # a transparent one would become visible
            change([_dark(part) for part in colour] if several else _dark(colour))


def _parts(artist: Artist) -> list[Artist]:
    """Returns the artist with its box and its arrow, which are not among the children of a text."""
    box = artist.get_bbox_patch() if isinstance(artist, Text) else None
    arrow = artist.arrow_patch if isinstance(artist, Annotation) else None
    return [artist, *([box] if box else []), *([arrow] if arrow else [])]


def _dark(colour: Any) -> tuple[float, ...]:
    """Returns the colour with its lightness inverted, as the CSS filter `invert(0.91) hue-rotate(180deg)` does.

    Source: Filter Effects Module Level 1 (W3C), whose weights of red, green and blue these are.
    """
    *rgb, alpha = to_rgba(colour)
    inverted = 0.91 - 0.82 * np.array(rgb)
    luma = inverted @ (0.213, 0.715, 0.072)
    return (*np.clip(2 * luma - inverted, 0, 1), alpha)
