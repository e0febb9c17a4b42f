"""Interactive charts of a ladder as one Vega-Lite specification, which a page draws if it may run scripts.

Bars show all variants at one case, lines their speed over the problem size, or dots that by case if the cases form
no series of sizes. The reader chooses case, regime (at rest or
back to back), unit (absolute or in percent of the baseline), order and variants; values appear under the pointer.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import cycle
from typing import TYPE_CHECKING

from warplog.core.columns import Row, number
from warplog.core.text import visible
from warplog.tables import regimes
from warplog.tables.series import series

if TYPE_CHECKING:
    import altair as alt

# Those of the scheme tableau10; pale ones follow for the variants that are not shown at first.
_STRONG = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#eeca3b", "#9d755d", "#ff9da6")
_PALE = ("#9ecae9", "#ffbf79", "#88d27a", "#83bcb6", "#d6a5c9", "#f2cf5b", "#d8b5a5", "#bab0ac")
_KINDS = {"main path": "#3f86b5", "detour": "#a3adb3", "baseline": "#7d5ba6"}
_NUMBER = "~f"  # without separators, as in the text of the page
_WIDTH, _BAR = 600, 17
_LEAST_SIZES = 3  # two are no curve
_LOG_FROM = 4  # ratio of the fastest to the slowest


@dataclass(frozen=True)
class Point:
    """A mark of the charts: a variant's speed at a case, in a regime.

    Attributes:
        place: that of the variant in the ladder, from 0.
        kind: main path, detour or baseline.
        speed, percent: the speed in the chart's unit, and relative to the baseline; None if unknown.
    """

    variant: str
    place: int
    kind: str
    case: str
    size: float
    regime: str
    speed: float | None
    percent: float | None
    time_us: float


def points(
    rows: Sequence[Row], order: Sequence[str], path: Sequence[str], speed: tuple[str, str, float]
) -> list[Point]:
    """Returns the values of the charts, one per variant, case and regime that has a time.

    Args:
        rows: Rows of the table `measurements`.
        order: The variants in the order of the ladder.
        path: The main path.
        speed: The column of the speed, its unit, and the factor from the column's unit.
    """
    column, _, factor = speed
    rest = regimes.where_timed(rows)
    by_case = {str(row["case"]): row for row in rows if row["variant"] == row.get("baseline")}
    points = []
    for row in rows:
        name, us = str(row["variant"]), number(row, "median_us")
        if row["status"] != "ok" or name not in order or not us > 0:
            continue
        kind = "baseline" if name == row.get("baseline") else "main path" if name in path else "detour"
        case = str(row["case"])
        about = visible(name), order.index(name), kind, visible(case), number(row, "size")
        base = by_case.get(case, {})
        for regime, timed in ((rest, "median_us"), (regimes.BACK_TO_BACK, "sustained_us")):
            time_us, base_us = number(row, timed), number(base, timed)
            if time_us > 0:
                faster = us / time_us if column != "median_us" else time_us / us
                rate, percent = number(row, column) * factor * faster, 100 * base_us / time_us
                points.append(Point(*about, regime, _or_none(rate), _or_none(percent), time_us))
    return points


def chart(
    values: Sequence[Point],
    headline: str,
    baseline: str,
    unit: str,
    size_label: str,
    highlighted: Sequence[str],
) -> str:
    """Returns the Vega-Lite specification of the charts as JSON; "" if there are no values.

    `headline` is the case and `highlighted` are the variants that are shown first; `unit` is that of the speed.
    """
    # Parameters are named in_...: Vega has signals of its own, such as "unit", and `case` is a word of its expressions.
    import altair as alt

    if not values:
        return ""
    cases = list(dict.fromkeys(point.case for point in values))
    named = list(dict.fromkeys(point.regime for point in values))
    units = [unit, *([f"% of {baseline}"] if any(point.percent is not None for point in values) else [])]
    names = list(dict.fromkeys(point.variant for point in sorted(values, key=lambda point: point.place)))
    case = alt.param(
        name="in_case", value=visible(headline), bind=alt.binding_select(options=cases, name="case ")
    )
    scale = alt.param(name="in_unit", value=units[0], bind=alt.binding_radio(options=units, name="unit "))
    regime = alt.param(
        name="in_regime", value=named[0], bind=alt.binding_radio(options=named, name="regime ")
    )
    sort = alt.param(
        name="in_order", value="ladder", bind=alt.binding_radio(options=["ladder", "speed"], name="order ")
    )
    chosen = alt.selection_point(
        name="chosen", fields=["variant"], bind="legend", toggle="true",
        value=[{"variant": name} for name in map(visible, highlighted) if name in names],
    )  # fmt: skip
    joined = series({point.case: point.size for point in values}, headline)
    joined = joined if len({point.size for point in values if point.case in joined}) >= _LEAST_SIZES else []
    data = alt.InlineData(values=[{**asdict(point), "joined": point.case in joined} for point in values])
    base = (
        alt.Chart(data)
        .transform_filter("datum.regime == in_regime")
        .transform_calculate(value=f"in_unit == {json.dumps(unit)} ? datum.speed : datum.percent")
        .transform_filter("isValid(datum.value)")
    )
    tooltip = [
        alt.Tooltip("variant:N"), alt.Tooltip("case:N"), alt.Tooltip("speed:Q", format=".4~g", title=unit),
        *([alt.Tooltip("percent:Q", format=".1f", title=units[1])] if len(units) > 1 else []),
        alt.Tooltip("time_us:Q", format=".5~g", title="µs"), alt.Tooltip("regime:N"),
    ]  # fmt: skip
    shown = [kind for kind in _KINDS if any(point.kind == kind for point in values)]
    kinds = alt.Scale(domain=shown, range=[_KINDS[kind] for kind in shown])
    bars = (
        base.transform_filter("datum['case'] == in_case")
        .transform_calculate(sorted="in_order == 'ladder' ? datum.place : -datum.value")
        .mark_bar()
        .encode(
            y=alt.Y(
                "variant:N",
                sort=alt.EncodingSortField("sorted", op="min"),
                title=None,
                axis=alt.Axis(labelLimit=220),
            ),
            x=alt.X("value:Q", title=None, axis=alt.Axis(format=_NUMBER, tickCount=8)),
            color=alt.Color("kind:N", scale=kinds, title=None, legend=alt.Legend(orient="top")),
            tooltip=tooltip,
        )
        .properties(
            width=_WIDTH,
            height=alt.Step(_BAR),
            title=alt.TitleParams(
                text=alt.expr("in_unit + ' at ' + in_case + ', ' + in_regime"), anchor="start", frame="group"
            ),
        )
    )
    if joined:
        sizes = {point.case: point.size for point in values}
        across, along = _by_size({case: sizes[case] for case in joined}, size_label), "size"
        marks = base.transform_filter("datum.joined && datum.size > 0").mark_line(point=True)
    else:
        across, along = alt.X("case:N", sort=cases, title=None, axis=alt.Axis(labelAngle=-45)), "case"
        marks = base.mark_point(filled=True, size=60)
    speeds = [point.speed for point in values if point.speed]
    spread = max(speeds, default=1.0) / min(speeds, default=1.0)
    scale_y = alt.Scale(type="log", nice=False) if spread > _LOG_FROM else alt.Undefined
    below = (
        marks.encode(
            x=across,
            y=alt.Y("value:Q", title=None, scale=scale_y, axis=alt.Axis(format=_NUMBER)),
            detail="variant:N",
            color=alt.when(chosen)
            .then(
                alt.Color(
                    "variant:N",
                    title="click to choose",
                    scale=alt.Scale(domain=names, range=_colours(names, list(map(visible, highlighted)))),
                    legend=alt.Legend(symbolLimit=60, labelLimit=200),
                )
            )
            .otherwise(alt.value("#9a9a92")),
            opacity=alt.when(chosen).then(alt.value(1.0)).otherwise(alt.value(0.18)),
            tooltip=tooltip,
        )
        .add_params(chosen)
        .properties(
            width=_WIDTH - 60,
            height=320,
            title=alt.TitleParams(
                text=alt.expr(f"in_unit + ' by {along}, ' + in_regime{_only(values)}"),
                anchor="start",
                frame="group",
            ),
        )
    )
    whole = alt.vconcat(bars, below).resolve_scale(color="independent").add_params(case, scale, regime, sort)
    # Checking it against the schema of Vega-Lite would take longer than making it; a test does.
    return str(whole.configure_view(stroke=None).to_json(indent=None, validate=False))


def _colours(names: Sequence[str], highlighted: Sequence[str]) -> list[str]:
    """Returns a colour per variant; those that are highlighted come first, so that no two of them share one."""
    first = sorted(names, key=lambda name: name not in highlighted)
    colours = dict(zip(first, cycle(_STRONG + _PALE), strict=False))
    return [colours[name] for name in names]


def _only(values: Sequence[Point]) -> str:
    """Returns the part of a title's expression that says at which case alone a regime was measured; "" for none."""
    at: dict[str, set[str]] = {}
    for point in values:
        at.setdefault(point.regime, set()).add(point.case)
    single = {
        regime: f" (measured at {next(iter(cases))} only)" for regime, cases in at.items() if len(cases) == 1
    }
    return f" + ({json.dumps(single)}[in_regime] || '')" if single else ""


def _by_size(sizes: Mapping[str, float], size_label: str) -> "alt.X":
    """Returns the axis of sizes, with a tick at each case that bears its name."""
    import altair as alt

    names = json.dumps({f"{size:.0f}": case for case, size in sizes.items()})
    axis = alt.Axis(
        values=list(sizes.values()), labelExpr=f"{names}[format(datum.value, 'd')]", labelOverlap=True
    )
    ends = [min(sizes.values()), max(sizes.values())]  # also where a regime has one size only
    scale = alt.Scale(type="log", base=2, nice=False, domain=ends if ends[0] < ends[1] else alt.Undefined)
    return alt.X("size:Q", scale=scale, title=size_label, axis=axis)


@cache
def library() -> str:
    """Returns the JavaScript of Vega, Vega-Lite and their embedding in a page, for a <script> element.

    It defines `vegaEmbed` and needs no network.
    """
    import vl_convert

    source = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    return source.replace("</script", r"<\/script").replace("<!--", r"<\!--")


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
