"""Do this campaign's numbers confirm what was published about these kernels?"""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from warplog.catalog.claims import NOT_JUDGED, NOT_MEASURABLE
from warplog.core.numbers import with_unit
from warplog.core.text import one_line
from warplog.plotting.labels import FAINT, MUTED, fit, is_narrow, line_in, width_in
from warplog.plotting.style import Look, new_figure, styled
from warplog.tables.files import ORIGIN_COLUMNS
from warplog.tables.view import FigureTables, words

NEEDS = ("claims",)
TITLE = "Claims and verdicts"
NOTE = (
    "✓ confirmed: the measured value meets the condition; ✗ refuted: it does not; ≈ within noise: neither is shown; "
    "– not judged: not measurable here, or about another GPU; "
    "whole claims, reasons, formulas and sources: the page and the table claims"
)
LOOKS = {  # verdict: mark, colour, band behind the row
    "confirmed": ("✓", "#1b6e53", "#e9f4f0"),
    "refuted": ("✗", "#a8321a", "#fbeae5"),
    "within_noise": ("≈", "#8a6d00", "#faf5e0"),
    "not_measurable": ("–", MUTED, "white"),
}
COLUMNS = {
    "verdict": 0.06,
    "id": 0.36,
    "claim": 0.8,
    "case": 4.5,
    "measured": 5.15,
    "condition": 6.25,
}  # starts, inches
WIDTHS_IN = {"id": 0.42, "claim": 3.6, "case": 0.6, "measured": 1.05, "condition": 0.83}
PAD_IN, HEADER_IN = 0.05, 0.22
HEADERS = {"verdict": "", "condition": "confirmed if"}
NOTHING = "this family has no claims"


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per claim of the family, as in the table `claims`; one row without an id if none."""
    kept = ["family", "id", "claim", "case", "verdict", "measured", "unit", "condition"]
    if tables.claims.empty:
        origin = tables.variants.reindex(columns=ORIGIN_COLUMNS).iloc[0].to_dict()
        nothing = {"family": tables.family, "claim": NOTHING, **origin}
        return pd.DataFrame([nothing], columns=[*kept, *ORIGIN_COLUMNS])
    return tables.claims.reindex(columns=[*kept, *ORIGIN_COLUMNS])


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws one line per claim: verdict, claim, case, measured value and condition."""
    claims = data[data["id"].notna()]
    found = claims["verdict"].value_counts()
    shown = {verdict: words(verdict) for verdict in LOOKS} | {NOT_MEASURABLE: NOT_JUDGED}
    counts = [f"{LOOKS[v][0]} {found[v]} {word}" for v, word in shown.items() if v in found] or [NOTHING]
    height = HEADER_IN + (line_in() + PAD_IN) * len(claims)
    figure = new_figure(f"{TITLE} · {data['family'].iloc[0]}: {', '.join(counts)}", height, NOTE, look)
    axes = figure.add_subplot()
    axes.set(xlim=(0, width_in() - 0.1), ylim=(height, 0))
    axes.set_axis_off()
    for name, start in _columns().items():
        axes.text(start, HEADER_IN - 0.06, HEADERS.get(name, name), color=MUTED)
    for place, row in enumerate(claims.to_dict("records")):
        _draw_row(axes, row, HEADER_IN + (line_in() + PAD_IN) * place)
    return figure


def _draw_row(axes: Axes, row: Mapping[Hashable, Any], top: float) -> None:
    mark, colour, band = LOOKS[row["verdict"]]
    bottom = top + line_in() + PAD_IN
    axes.axhspan(top, bottom, color=band, lw=0)
    axes.axhline(bottom, color=FAINT, lw=0.5)
    first = top + PAD_IN / 2 + line_in() * 0.78  # baseline of the first line
    cells = {
        "id": row["id"],
        "claim": row["claim"],
        "case": row["case"],
        "measured": with_unit(row["measured"], str(row["unit"] or "")),
        "condition": row["condition"],
    }
    for name, start in _columns().items():
        if name in cells:
            width = min(WIDTHS_IN[name], width_in() - 0.35 - start)
            axes.text(start, first, fit(one_line(str(cells[name])), width))
    axes.text(COLUMNS["verdict"], first, mark, color=colour, weight="bold")


def _columns() -> dict[str, float]:
    """Returns where each column starts in inches; in a narrow figure, only verdict, id and claim have room."""
    shown = ("verdict", "id", "claim") if is_narrow() else tuple(COLUMNS)
    return {name: COLUMNS[name] for name in shown}
