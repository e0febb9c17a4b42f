"""How well does the model of mechanisms predict what each step of a campaign saves?"""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from warplog.core.csv_text import csv_of_table
from warplog.core.files import write_text
from warplog.figures.shared import style
from warplog.figures.shared.labels import FAINT, INK, MUTED, is_narrow, legend_above, tick
from warplog.figures.shared.settings import Settings
from warplog.figures.shared.style import Look, new_figure, styled

NAME = "predicted_savings"
NOTE = (
    "a point per step: time that it saves or costs compared with its parent, predicted from the work of both, against"
    " measured; line: equal; grey: the median width of the intervals; less than {least} µs is drawn as {least} µs"
)
NOTHING = "no step could be predicted: counts of work or ceilings are missing"
LEAST_US = 0.1
# Word: label, marker, colour, face; the last two are told apart by their shape in grey, too.
LOOKS = {
    "predicted": ("predicted", "o", "#1b6e53", "#1b6e53"),
    "accounted": ("accounted for afterwards", "^", "#2166ac", "#2166ac"),
    "not_in_evidence": ("not in evidence", "s", "#b2182b", "white"),
    "opposite": ("not in evidence, opposite sign", "x", "#b2182b", "#b2182b"),
}


def data(mechanisms: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of the table `mechanisms` whose saving could be predicted."""
    return mechanisms[mechanisms["predicted_us"].notna()].drop(columns="rests_on").reset_index(drop=True)


def write(mechanisms: pd.DataFrame, settings: Settings, folder: Path) -> list[Path]:
    """Draws the figure in the formats of the settings, with its numbers as CSV, and returns the files."""
    rows, stem = data(mechanisms), folder / NAME
    names = (" + ".join(sorted(set(mechanisms[column]))) for column in ("gpu_name", "origin", "campaign"))
    look = Look("{} · {} campaign {}".format(*names) if len(mechanisms) else "", settings=settings)
    files = [stem.with_suffix(suffix) for suffix in settings.suffixes]
    folder.mkdir(parents=True, exist_ok=True)
    write_text(stem.with_suffix(".csv"), csv_of_table(rows))
    style.save(draw(rows, look), *files, settings=settings)
    return [*files, stem.with_suffix(".csv")]


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws predicted against measured savings on logarithmic axes, by word, with the line of equality."""
    held = (data["word"] == "predicted").sum()
    title = f"{held} of {len(data)} steps are as predicted" if len(data) else "Predicted savings"
    figure = new_figure(title, 3.1 if is_narrow() else 4.4, NOTE.format(least=LEAST_US), look)
    axes = figure.add_subplot()
    if data.empty:
        axes.set_axis_off()
        axes.text(0, 0.5, NOTHING, color=MUTED, style="italic")
        return figure
    predicted, measured = (data[f"{name}_us"].abs().clip(LEAST_US) for name in ("predicted", "measured"))
    ends = min(predicted.min(), measured.min()) / 1.5, max(predicted.max(), measured.max()) * 1.5
    share = ((data["high_us"] - data["low_us"]) / 2 / data["predicted_us"].abs()).median()
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    axes.set(xlabel="predicted saving or cost (µs, log scale)", ylabel="measured (µs, log scale)")
    below, above = ([end * (1 + side) for end in ends] for side in (-share, share))
    axes.fill_between(ends, below, above, color=FAINT, lw=0)
    axes.plot(ends, ends, color=INK, lw=0.8)
    opposite = (data["word"] == "not_in_evidence") & (data["predicted_us"] * data["measured_us"] < 0)
    words = data["word"].mask(opposite, "opposite")
    handles = []
    for word, (label, marker, colour, face) in LOOKS.items():
        own = words == word
        shown: Any = {
            "color": colour,
            "marker": marker,
            "markerfacecolor": face,
            "linestyle": "",
            "markersize": 4,
        }
        axes.plot(predicted[own], measured[own], zorder=3, **shown)
        handles += [Line2D([], [], label=f"{label} ({own.sum()})", **shown)] if own.any() else []
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=6 if is_narrow() else 9))
        axis.set_major_formatter(FuncFormatter(lambda us, _: tick(us)))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(axis="both")
    legend_above(axes, handles)
    return figure
