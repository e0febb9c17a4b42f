"""Do this campaign's numbers confirm what was published about these kernels?"""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from warplog.core.numbers import with_unit
from warplog.core.text import one_line
from warplog.plotting.labels import FAINT, INK, LINE_IN, MUTED, WIDTH_IN, fit, wrap
from warplog.plotting.style import Look, new_figure, styled
from warplog.tables.files import ORIGIN_COLUMNS
from warplog.tables.view import FigureTables, words

NEEDS = ("claims",)
TITLE = "Claims and verdicts"
NOTE = (
    "✓ confirmed: the measured value meets the condition; ✗ refuted: it does not; "
    "– not measurable here, with the reason; below each claim: what was published; "
    "formulas and sources: table claims"
)
LOOKS = {  # verdict: mark, colour, band behind the row
    "confirmed": ("✓", "#1b6e53", "#e9f4f0"),
    "refuted": ("✗", "#a8321a", "#fbeae5"),
    "not_measurable": ("–", MUTED, "white"),
}
COLUMNS = {"verdict": 0.06, "id": 0.24, "claim": 0.68, "measured": 5.1, "condition": 6.2}  # starts, in inches
WIDTHS_IN = {"id": 0.42, "measured": 1.05, "condition": 0.88}
CLAIM_IN, PAD_IN, HEADER_IN = 4.3, 0.07, 0.22
HEADERS = {"verdict": "", "condition": "confirmed if"}
NOTHING = "this family has no claims"


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per claim of the family, as in the table `claims`; one row without an id if none."""
    kept = ["family", "id", "claim", "published", "verdict", "measured", "unit", "condition", "reason"]
    if tables.claims.empty:
        origin = tables.variants.reindex(columns=ORIGIN_COLUMNS).iloc[0].to_dict()
        nothing = {"family": tables.family, "claim": NOTHING, **origin}
        return pd.DataFrame([nothing], columns=[*kept, *ORIGIN_COLUMNS])
    return tables.claims.reindex(columns=[*kept, *ORIGIN_COLUMNS])


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws a table of the claims: what was published, the verdict, the measured value and the condition."""
    claims = data[data["id"].notna()]
    found = claims["verdict"].value_counts()
    counts = [f"{mark} {found[v]} {words(v)}" for v, (mark, _, _) in LOOKS.items() if v in found] or [NOTHING]
    rows = [(row, _lines(row)) for row in claims.to_dict("records")]
    height = HEADER_IN + sum(_height(lines) for _, lines in rows)
    figure = new_figure(f"{TITLE} · {data['family'].iloc[0]}: {', '.join(counts)}", height, NOTE, look)
    axes = figure.add_subplot()
    axes.set(xlim=(0, WIDTH_IN - 0.1), ylim=(height, 0))
    axes.set_axis_off()
    for name, start in COLUMNS.items():
        axes.text(start, HEADER_IN - 0.06, HEADERS.get(name, name), color=MUTED)
    top = HEADER_IN
    for row, lines in rows:
        _draw_row(axes, row, lines, top)
        top += _height(lines)
    return figure


def _lines(row: Mapping[Hashable, Any]) -> list[tuple[str, str]]:
    """Returns the lines of a claim with their colours: the claim, what was published, the reason."""
    published = f"published: {row['published']}" if row["published"] else ""
    parts = [(row["claim"], INK), (published, MUTED), (row["reason"], MUTED)]
    return [(line, colour) for text, colour in parts if text for line in wrap(one_line(str(text)), CLAIM_IN)]


def _height(lines: list[tuple[str, str]]) -> float:
    return LINE_IN * len(lines) + PAD_IN


def _draw_row(axes: Axes, row: Mapping[Hashable, Any], lines: list[tuple[str, str]], top: float) -> None:
    mark, colour, band = LOOKS[row["verdict"]]
    bottom = top + _height(lines)
    axes.axhspan(top, bottom, color=band, lw=0)
    axes.axhline(bottom, color=FAINT, lw=0.5)
    first = top + PAD_IN / 2 + LINE_IN * 0.78  # baseline of the first line
    for number_of, (line, shade) in enumerate(lines):
        axes.text(COLUMNS["claim"], first + LINE_IN * number_of, fit(line, CLAIM_IN), color=shade)
    cells = {
        "id": row["id"],
        "measured": with_unit(row["measured"], str(row["unit"] or "")),
        "condition": row["condition"],
    }
    for name, text in cells.items():
        axes.text(COLUMNS[name], first, fit(one_line(str(text)), WIDTHS_IN[name]))
    axes.text(COLUMNS["verdict"], first, mark, color=colour, weight="bold")
