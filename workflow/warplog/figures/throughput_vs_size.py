"""From which problem size on does each variant pay off, and how far is it from the GPU's peak?"""

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from warplog.core import columns
from warplog.core.numbers import rate_unit
from warplog.core.text import listed
from warplog.figures.shared.highlight import GREY, largest_compared, leads, wins
from warplog.figures.shared.labels import (
    INK,
    MUTED,
    ON_PAPER,
    SideLabel,
    drawn_as,
    fit,
    is_narrow,
    line_in,
    name_in,
    number,
    plot_width_in,
    side_labels,
    spread,
    tick,
)
from warplog.figures.shared.style import MOST_NAMED, Look, VariantStyle, new_figure, styled
from warplog.tables import regimes
from warplog.tables.files import ORIGIN_COLUMNS, as_rows
from warplog.tables.series import series
from warplog.tables.view import FigureTables, words

NEEDS = ()
TITLE = "Throughput by problem size"
BY_CASE = "Throughput by case"
NOTE = "medians {regime}; {ends}: {interval}"
_MOST_CASES = 3  # that a note names
_LEAST_SIZES = 3  # fewer show no course over the size
_LOG_FROM = 4  # ratio of the largest to the smallest speed from which the axis is logarithmic

_LANE = 0.11  # distance between the dots of two variants, in columns of cases


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per variant and timed case, in ladder order and by size: rate and quartiles, or gap.

    There are no rows if fewer than three sizes have a time. `quantity` names what `rate` is (see
    FigureTables.quantity); `peak` is the GPU's peak in the same unit.
    """
    quantity = tables.quantity()
    timed = _cases(tables)
    rows = pd.concat(
        [tables.ladder(c).assign(size=s, drawn=d, alone=a) for c, s, d, a in timed.itertuples(index=False)]
    )
    rows = rows.sort_values(["order", "size"], kind="stable").reset_index(drop=True)
    good = (rows["status"] == "ok") & rows["median_us"].notna()
    rate = rows[quantity.column].where(good)
    inverse = quantity.column == "median_us"
    records = as_rows(rows)
    ends = pd.DataFrame(list(map(regimes.interval_us, records)), columns=["low", "high"], index=rows.index)
    scale = ends.div(rows["median_us"], axis=0)
    rows["rate"] = rate
    rows["rate_q1"] = rate * scale["low"] if inverse else rate / scale["high"]
    rows["rate_q3"] = rate * scale["high"] if inverse else rate / scale["low"]
    rows["leads"] = leads(rows.assign(median_us=rows["median_us"].where(good)))
    rows["regime"], rows["interval"] = regimes.where_timed(records), regimes.interval_words(records)
    rows["quantity"], rows["unit"] = quantity.label, quantity.unit
    rows["peak"], rows["peak_label"] = quantity.peak, quantity.peak_label
    rows["peak_source"] = tables.peaks_text()
    rows["is_headline"] = rows["case"] == tables.case
    rows["size_label"] = _first(tables.variants, "size_label") or "problem size"
    rows.loc[(rows["gap"] == "") & rate.isna(), "gap"] = "n/a"
    timed = rows[rows["drawn"] & (rows["gap"] == "")]
    if timed.loc[~timed["alone"] | bool(rows["alone"].all()), "case"].nunique() < _LEAST_SIZES:
        rows = rows.iloc[:0]
    kept = ["family", "variant", "order", "is_baseline", "case", "size", "drawn", "alone", "status", "gap"]
    kept += ["own_limits", "median_us"]
    kept += ["rate", "rate_q1", "rate_q3", "quantity", "unit", "peak", "peak_label", "peak_source"]
    return rows[[*kept, "leads", "is_headline", "size_label", "regime", "interval", *ORIGIN_COLUMNS]]


def _cases(tables: FigureTables) -> pd.DataFrame:
    """Returns the timed cases by size, whether each is drawn, and whether it stands alone instead of in a line.

    Cases outside of the series, such as a matrix that is not square, stand alone; they are not drawn if a size occurs
    twice. Without a series, all cases are drawn and stand alone.
    """
    timed = tables.measurements[["case", "size"]].drop_duplicates("case").sort_values("size", kind="stable")
    joined = timed["case"].isin(series(dict(zip(timed["case"], timed["size"], strict=True)), tables.case))
    drawn = joined | (not joined.any()) | (not timed["size"].duplicated().any())
    return timed.assign(drawn=drawn, alone=~joined)


def _first(table: pd.DataFrame, column: str) -> str:
    return str(table[column].iloc[0]) if column in table and len(table) else ""


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws one line per variant over log2 size, labelled at its end; × marks a size without a time.

    Cases that are no series of sizes stand side by side in order of size, as dots.
    """
    note, data = _note(data), _in_its_unit(data[data["drawn"]])
    first, names, by_case = data.iloc[0], look.coloured(data["variant"]), bool(data["alone"].all())
    data = _side_by_side(data, names) if by_case else _along(data)
    data = data.assign(piece=(data["gap"] != "").groupby(data["variant"]).cumsum())  # of a line with gaps
    good, joined = data[data["gap"] == ""], data[by_case | ~data["alone"]]
    grey = [name for name in dict.fromkeys(good["variant"]) if name not in names]
    note += f"; grey: {', '.join(fit(str(name), name_in()) for name in grey)}" if grey else ""
    labelled = joined[~joined["variant"].isin(grey)]
    body = _body_in(labelled) + (0.6 if by_case else 0)
    title = _title_by_case(data) if by_case else _title(first, good[~good["alone"]])
    figure = new_figure(title, body, note, look, timed=True)
    axes = figure.add_subplot()
    for name, rows in good.groupby("variant", sort=False):
        style, lines = look.style(str(name)), rows[~rows["alone"]]
        for _, piece in lines.groupby("piece"):
            if name in grey:
                axes.plot(piece["x"], piece["rate"], color=GREY, lw=0.8, zorder=1)
                continue
            axes.plot(piece["x"], piece["rate"], **drawn_as(style.edge, style.marker, style.dashes))
            ends = piece["rate_q1"], piece["rate_q3"]
            axes.fill_between(piece["x"], *ends, color=style.edge, alpha=0.18, lw=0)
        if by_case or name not in grey:
            _dots(axes, rows[rows["alone"]], style, name in grey, by_case)
    axes.set_ylabel(f"{first['quantity']} ({first['unit']})")
    if by_case:
        cases = list(dict.fromkeys(data.sort_values("size", kind="stable")["case"]))
        axes.set_xticks(range(len(cases)), cases, rotation=30, ha="right", rotation_mode="anchor")
        axes.set(xlabel=f"case, by {first['size_label']}", xlim=(-0.6, len(cases) - 0.4))
    else:
        axes.set_xlabel(f"{first['size_label']} (log scale)")
        _sizes(axes, data)
    _rates(axes, good, first["unit"])
    _peak(axes, first, good)
    height = body - (1.1 if by_case else 0.5)
    labels = [_label(rows, look) for _, rows in labelled.groupby("variant", sort=False)]
    labels = [replace(label, dashes=None) for label in labels] if by_case else labels
    side_labels(axes, labels, height, plot_width_in(labels))
    marked = (joined["gap"] != "") & (joined["status"] != "unsupported") & joined["place"].notna()
    _gaps(axes, joined[marked], look, height)
    return figure


def _along(data: pd.DataFrame) -> pd.DataFrame:
    """Adds where each row lies on its line: `x`, and its `place`, between its neighbours if it has no rate."""
    lines = data[~data["alone"]].groupby("variant", sort=False)
    place = lines["rate"].transform(
        lambda rates: rates.interpolate(limit_direction="both") if rates.notna().any() else rates
    )
    return data.assign(x=data["size"], place=place)


def _side_by_side(data: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Adds where each row lies among the columns of cases: `x`, and its `place`, at the bottom if it has no rate."""
    cases = list(dict.fromkeys(data.sort_values("size", kind="stable")["case"]))
    lanes = {name: _LANE * (place - (len(names) - 1) / 2) for place, name in enumerate(names)}
    x = data["case"].map(cases.index) + data["variant"].map(lanes).fillna(0.0)
    timed = data["rate"].notna().groupby(data["variant"]).transform("any")
    return data.assign(x=x, place=data["rate"].fillna(data["rate"].min()).where(timed))


def _dots(axes: Axes, rows: pd.DataFrame, style: VariantStyle, is_grey: bool, by_case: bool) -> None:
    """Draws cases that are in no line; beside lines as open marks, such as that of a matrix that is not square."""
    if is_grey:
        axes.plot(rows["x"], rows["rate"], "o", color=GREY, ms=4, zorder=1)
        return
    look = drawn_as(style.edge, style.marker, None)
    if by_case:
        axes.vlines(rows["x"], rows["rate_q1"], rows["rate_q3"], color=style.edge, lw=1.0)
    else:
        look |= {
            "markerfacecolor": "white",
            "markeredgecolor": style.edge,
            "markeredgewidth": 1.0,
            "zorder": 4,
        }
    axes.plot(rows["x"], rows["rate"], **look)


def _body_in(labelled: pd.DataFrame) -> float:
    """Returns the height of axes with room for the labels beside them, in inches."""
    labels = 0 if is_narrow() else labelled["variant"].nunique()
    return max(2.6 if is_narrow() else 3.3, 0.75 + line_in() * labels)


def _note(data: pd.DataFrame) -> str:
    first, drawn = data.iloc[0], data[data["drawn"]]
    columns = bool(drawn["alone"].all())
    ends = "vertical lines" if columns else "bands"
    note = NOTE.format(regime=first["regime"], interval=first["interval"], ends=ends)
    if columns:
        return note
    others = list(dict.fromkeys(data.loc[~data["drawn"], "case"]))
    named = " and ".join(others) if len(others) <= _MOST_CASES else f"{len(others)} cases of another kind"
    note += f"; not drawn: {named} (in this figure's CSV)" if others else ""
    lone = list(dict.fromkeys(drawn.loc[drawn["alone"], "case"]))
    note += f"; open marks: {', '.join(lone)}" if lone else ""
    refused = drawn.loc[~drawn["alone"], "status"] == "unsupported"
    stops = refused.any() and not refused.all()
    return note + ("; a line ends at the largest size at which its variant was run" if stops else "")


def _title(first: pd.Series, good: pd.DataFrame) -> str:
    """Returns the finding: the fastest variant at the largest size, or how many are tied with it within noise."""
    last = largest_compared(good)
    if last.empty:
        return f"{TITLE} · {first['family']}"
    best, tied = last.nsmallest(1, "median_us").iloc[0], last[last["leads"]]
    return f"{TITLE}: {_leading(str(best['variant']), list(tied['variant']))} at {best['case']} · {first['family']}"


def _leading(best: str, tied: list[str]) -> str:
    """Returns "a is the fastest", "a, b and c are tied", or "a and 7 more are tied"."""
    others = [name for name in tied if name != best]
    if not others:
        return f"{best} is the fastest"
    return f"{listed([best, *(others if len(others) < MOST_NAMED else [f'{len(others)} more'])])} are tied"


def _title_by_case(data: pd.DataFrame) -> str:
    """Returns the finding: the variant that is the fastest, or tied with the fastest, in most cases."""
    good = data[data["gap"] == ""]
    won = wins(good)
    most = max(won, key=won.__getitem__)
    finding = f"the fastest, or tied with the fastest, in {int(won[most])} of {good['case'].nunique()} cases"
    return f"{BY_CASE}: {most} is {finding} · {data['family'].iloc[0]}"


def _in_its_unit(data: pd.DataFrame) -> pd.DataFrame:
    """Converts the rates and the peak to the unit of the figure."""
    unit, factor = rate_unit(str(data["unit"].iloc[0]), [*data["rate"], *data["peak"]])
    rates = ["rate", "rate_q1", "rate_q3", "peak"]
    return data.assign(unit=unit, **{name: data[name] * factor for name in rates})


def _sizes(axes: Axes, data: pd.DataFrame) -> None:
    """Sets up the axis of sizes."""
    sizes = sorted(float(s) for s in data["size"].unique() if s > 0) or [1.0]
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(_apart(sizes)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: _short(size, sizes[-1])))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(sizes[0] / 1.15, sizes[-1] * 1.15)


def _rates(axes: Axes, good: pd.DataFrame, unit: str) -> None:
    """Sets up the axis of rates, or of times if the family is shown by them."""
    low, high = good["rate"].min(), float(good["rate_q3"].fillna(good["rate"]).max())
    if unit == "µs" or high > _LOG_FROM * low > 0:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 50 * low else (1,)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(0, high * 1.08)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: tick(rate)))
    axes.grid(axis="y")


def _apart(sizes: list[float]) -> list[float]:
    """Selects from the ascending sizes tick positions that are at least a ninth of the axis apart, a quarter if narrow.

    If two sizes are closer, the one with more factors of two is kept: 8192 rather than 8191.
    """
    step = 0.999 * (sizes[-1] / sizes[0]) ** (1 / 4 if is_narrow() else 1 / 9)
    kept: list[float] = []
    for size in sorted(sizes, key=lambda size: -(int(size) & -int(size))):
        if all(max(size / other, other / size) >= step for other in kept):
            kept.append(size)
    return sorted(kept)


def _short(size: float, largest: float) -> str:
    """Formats a size in binary units, such as 16Mi for 16777216, if the largest size is at least 64Ki."""
    for factor, unit in ((2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
        if largest >= 2**16 and size >= factor and size % factor == 0:
            return f"{size / factor:.0f}{unit}"
    return f"{size:.0f}"


def _peak(axes: Axes, first: pd.Series, good: pd.DataFrame) -> None:
    """Draws the GPU's peak as a line, or writes it above the axes if it is far above all measured rates."""
    if not np.isfinite(first["peak"]):
        return
    source = "" if is_narrow() else f", {first['peak_source']}"
    text = f"{first['peak_label']} {number(first['peak'])} {first['unit']}{source}"
    if first["peak"] > 4 * good["rate"].max():
        axes.set_title(f"{text}: far above the range of this axis", loc="left", color=MUTED)
        return
    axes.axhline(first["peak"], color=INK, lw=1.0)
    axes.set_ylim(top=max(axes.get_ylim()[1], first["peak"] * (1.5 if axes.get_yscale() == "log" else 1.1)))
    axes.annotate(
        text, (0.01, first["peak"]), (0, 3), xycoords=("axes fraction", "data"), textcoords="offset points"
    )


def _label(rows: pd.DataFrame, look: Look) -> SideLabel:
    """Returns the variant's label at the largest size that it supports, or with its status without times."""
    supported = rows[rows["status"] != "unsupported"]
    last = (supported if len(supported) else rows).iloc[-1]
    style, name = look.style(last["variant"]), fit(last["variant"], name_in())
    if pd.isna(last["place"]):
        return SideLabel(np.nan, np.nan, f"{name}: {_status(last['status'], last['own_limits'])}")
    return SideLabel(last["x"], last["place"], name, style.edge, style.marker, style.dashes)


def _status(status: str, own_limits: str = "") -> str:
    return "n/a" if status == "ok" else words(status, own_limits)


def _gaps(axes: Axes, gaps: pd.DataFrame, look: Look, height_in: float) -> None:
    """Draws × where a variant's line would pass a size without a time, with the status."""
    to_fraction = axes.transData + axes.transAxes.inverted()
    smallest = axes.get_xlim()[0] * 1.2
    for size, here in gaps.groupby(gaps["x"].astype(float)):
        size = float(str(size))
        marks = [float(to_fraction.transform((size, place))[1]) for place in here["place"]]
        heights = spread(marks, line_in() / height_in, 0, 1)
        left = size > smallest  # the text is left of its mark, except at the left edge
        for gap, height in zip(as_rows(here), heights, strict=True):
            colour = look.style(str(gap["variant"])).edge
            axes.plot(
                size, columns.number(gap, "place"), marker="x", color=colour, markersize=6, mew=1.6, ls=""
            )
            axes.annotate(
                _status(str(gap["status"])),
                (size, height),
                (-5 if left else 5, 0),
                style="italic",
                color=MUTED,
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                va="center",
                ha="right" if left else "left",
                bbox=ON_PAPER,
            )
