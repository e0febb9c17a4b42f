"""Do this campaign's numbers confirm what was published about these kernels?"""

import itertools
from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from warplog.catalog.claims import NOT_JUDGED, NOT_MEASURABLE, condition_words
from warplog.core.columns import Row, number, text
from warplog.core.numbers import with_unit
from warplog.core.text import one_line
from warplog.figures.shared.labels import FAINT, MUTED, fit, is_narrow, line_in, text_width_in, width_in, wrap
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.tables.files import ORIGIN_COLUMNS, as_rows
from warplog.tables.view import FigureTables, words

NEEDS = ("claims",)
TITLE = "Claims and verdicts"
NOTE = (
    "✓ confirmed: the measured value meets the condition; ✗ refuted: it does not; ≈ within noise: neither is shown; "
    "– not judged: not measurable here, or about another GPU; "
    "reasons, formulas and sources: the page and the table claims"
)
LOOKS = {  # verdict: mark, colour, band behind the row
    "confirmed": ("✓", "#1b6e53", "#e9f4f0"),
    "refuted": ("✗", "#a8321a", "#fbeae5"),
    "within_noise": ("≈", "#8a6d00", "#faf5e0"),
    "not_measurable": ("–", MUTED, "white"),
}
COLUMNS = ("id", "claim", "case", "measured", "condition")  # the claim has the width that the others leave
MARK_IN, MOST_IN, GAP_IN = (
    0.34,
    1.2,
    0.12,
)  # width of the verdict's mark, largest width of a column, space between two
PAD_IN, HEADER_IN = 0.05, 0.22
HEADERS = {"condition": "confirmed if"}
NOTHING = "this family has no claims"


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per claim of the family, as in the table `claims`; one row without an id if none."""
    kept = ["family", "id", "claim", "case", "verdict", "margin", "measured", "unit", "condition"]
    if tables.claims.empty:
        origin = tables.variants.reindex(columns=ORIGIN_COLUMNS).iloc[0].to_dict()
        nothing = {"family": tables.family, "claim": NOTHING, **origin}
        return pd.DataFrame([nothing], columns=[*kept, *ORIGIN_COLUMNS])
    return tables.claims.reindex(columns=[*kept, *ORIGIN_COLUMNS])


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws one row per claim: verdict, claim, case, measured value and condition."""
    claims = data[data["id"].notna()]
    verdicts = claims["verdict"].value_counts()
    shown = {verdict: words(verdict) for verdict in LOOKS} | {NOT_MEASURABLE: NOT_JUDGED}
    counts = [f"{LOOKS[v][0]} {verdicts[v]} {word}" for v, word in shown.items() if v in verdicts] or [
        NOTHING
    ]
    texts = [_texts(row) for row in as_rows(claims)]
    columns = _columns(texts)
    rows = [
        {name: [fit(line, width) for line in wrap(text[name], width)] for name, (_, width) in columns.items()}
        for text in texts
    ]
    heights = [PAD_IN + line_in() * max(map(len, cells.values())) for cells in rows]
    height = HEADER_IN + sum(heights)
    figure = new_figure(f"{TITLE} · {data['family'].iloc[0]}: {', '.join(counts)}", height, NOTE, look)
    axes = figure.add_subplot()
    axes.set(xlim=(0, width_in() - 0.1), ylim=(height, 0))
    axes.set_axis_off()
    for name, (start, _) in columns.items():
        axes.text(start, HEADER_IN - 0.06, HEADERS.get(name, name), color=MUTED)
    top = HEADER_IN
    for verdict, cells, high in zip(claims["verdict"], rows, heights, strict=True):
        mark, colour, band = LOOKS[str(verdict)]
        axes.axhspan(top, top + high, color=band, lw=0)
        axes.axhline(top + high, color=FAINT, lw=0.5)
        axes.text(0.06, _baseline(top), mark, color=colour, weight="bold")
        for name, lines in cells.items():
            for place, line in enumerate(lines):
                # The layout would make the axes narrower for a text that ends near their edge.
                axes.text(columns[name][0], _baseline(top) + line_in() * place, line, in_layout=False)
        top += high
    return figure


def _texts(row: Row) -> dict[str, str]:
    shown = {name: text(row, name) for name in COLUMNS if name != "measured"}
    margin, unit = text(row, "margin"), text(row, "unit")
    shown["measured"] = with_unit(number(row, "measured"), unit) + (f" ({margin})" if margin else "")
    shown["condition"] = condition_words(text(row, "condition"), unit)
    return {name: one_line(words) for name, words in shown.items()}


def _columns(texts: Sequence[Mapping[str, str]]) -> dict[str, tuple[float, float]]:
    """Returns start and width of each column in inches; in a narrow figure, only id and claim have room."""
    names = COLUMNS[:2] if is_narrow() else COLUMNS
    widths = {
        name: min(
            MOST_IN, max(text_width_in(text) for text in [HEADERS.get(name, name), *(t[name] for t in texts)])
        )
        for name in names
        if name != "claim"
    }
    widths["claim"] = width_in() - 0.16 - MARK_IN - sum(width + GAP_IN for width in widths.values())
    starts = itertools.accumulate((widths[name] + GAP_IN for name in names[:-1]), initial=MARK_IN)
    return {name: (start, widths[name]) for name, start in zip(names, starts, strict=True)}


def _baseline(top: float) -> float:
    """Returns the baseline of the first line in a row."""
    return top + PAD_IN / 2 + line_in() * 0.78
