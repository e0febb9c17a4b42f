"""What besides one kernel or copy takes time in the launches of each variant: other activities, or gaps?"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from warplog.core import columns
from warplog.core.columns import Row
from warplog.figures.shared.labels import (
    INK,
    bar_rows,
    cells,
    gap_note,
    is_narrow,
    legend_above,
    number,
    row_in,
    text_column,
)
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.tables.activity import activities, captured_case, statistics
from warplog.tables.files import ORIGIN_COLUMNS, as_rows
from warplog.tables.view import FigureTables

NEEDS = ("no_overlap_figure",)
TITLE = "Trace of launches"
NOTE = (
    "nsys, hot: launches back to back with a warm L2; ▸: continues beyond the axis; span: first start to last end; "
    "launch: median time in which the GPU is active in a launch; idle: median gap; busy: share of the span "
    "in which the GPU was active; not drawn: variants in which one kernel or copy takes at least "
    "{most:.0f} % of the span"
)
ALL_PCT = 90.0  # an activity with at least this share of the span leaves nothing else to see
MOST_EVENTS = 60  # drawn and listed per variant; the columns cover all events
BUSY_PCT = 90.0  # below it the title names the variant
WINDOW = 2.5  # maximum length of the axis in multiples of the shortest lane
FILLS = {  # kind of event: face (None: the variant's), hatch, legend
    "kernel": (None, "", "longest kernel, in the variant's colour"),
    "other kernel": ("#d9d9d9", "\\\\\\\\", "other kernels"),
    "Host-to-Device": ("white", "....", "copy to the device"),
    "Device-to-Host": ("white", "////", "copy to the host"),
    "memcpy": ("white", "xxxx", "copy"),
    "memset": ("white", "++++", "memset"),
}
STATISTICS = [
    "events",
    "span_us",
    "busy_pct",
    "longest_pct",
    "gap_median_us",
    "gap_max_us",
    "kernel",
    "launch_median_us",
]


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per kernel, copy and memset of the profiled case (at most 60 per variant), or per gap.

    Variants in which one activity takes nearly the whole span are left out: they would repeat the times. start_us
    counts from the variant's first event. The columns STATISTICS cover all events of the variant (see
    tables.activity.statistics).
    """
    case, lanes = captured_case(tables), activities(tables)
    pieces = []
    kept = ["family", "variant", "order", "is_baseline", "case", "status", "gap"]
    for row in as_rows(tables.ladder(case)):
        events = lanes.get(str(row["variant"]))
        shared = {k: row[k] for k in [*kept, *ORIGIN_COLUMNS]}
        if events is None or row["gap"]:
            pieces.append(pd.DataFrame([shared | {"gap": row["gap"] or "n/a"}]))
            continue
        numbers = statistics(events)
        if not columns.number(numbers, "longest_pct") >= ALL_PCT:
            drawn = events[["name", "kind", "stream", "start_us", "duration_us"]].head(MOST_EVENTS)
            pieces.append(drawn.assign(**shared, **numbers))
    shown = [*kept, "name", "kind", "stream", "start_us", "duration_us", *STATISTICS, *ORIGIN_COLUMNS]
    rows = pd.concat(pieces, ignore_index=True) if pieces else pd.DataFrame()
    rows = rows.reindex(columns=shown)
    return rows if (rows["gap"] == "").any() else rows.iloc[:0]


def _finding(rows: pd.DataFrame) -> str:
    """Returns in which variants the GPU idles, or how busy it is in all; the title without a finding if unknown."""
    counted = as_rows(rows[(rows["gap"] == "") & rows["busy_pct"].notna()])
    if not counted:
        return TITLE
    least = min(counted, key=lambda row: columns.number(row, "busy_pct"))
    percent = columns.number(least, "busy_pct")
    busy = f"{number(percent)} % of the time"
    if percent < BUSY_PCT:
        return f"{TITLE}: in {least['variant']} the GPU is busy only {busy}"
    return f"{TITLE}: the GPU is busy at least {busy}{' in all variants shown' if len(counted) > 1 else ''}"


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws one lane per variant on one time axis, one row per stream; durations and gaps beside them."""
    rows = data.drop_duplicates("variant").reset_index(drop=True)
    first, good = rows.iloc[0], rows["gap"] == ""
    streams = max(1, int(data.groupby("variant")["stream"].nunique().max()))
    cut = (rows["events"] > MOST_EVENTS).any()
    note = NOTE.format(most=ALL_PCT) + (
        f"; only the first {MOST_EVENTS} events of a lane are drawn" if cut else ""
    )
    title = f"{_finding(rows)} · {first['family']}, case {first['case']}"
    figure = new_figure(title, 0.84 + row_in() * len(rows) * max(1.0, 0.5 * streams), note, look)
    axes = figure.add_subplot()
    bar_rows(axes, rows["variant"], rows["is_baseline"])
    spans = rows.loc[good, "span_us"]
    window_us = min(spans.max(), WINDOW * spans.min()) if good.any() else 1.0
    factor, unit = _unit(window_us)
    axes.set(xlim=(0, window_us / factor), xlabel=f"time since the first start of each lane ({unit})")
    fills = set()
    for place, row in enumerate(as_rows(rows)):
        if gap := columns.text(row, "gap"):
            gap_note(axes, place, gap)
        else:
            fills |= _lane(axes, place, data[data["variant"] == row["variant"]], look, window_us)
    if good.any():
        _columns(axes, rows)
        _legend(axes, fills)
    else:
        axes.set_xticks([])
    return figure


def _lane(axes: Axes, row: int, events: pd.DataFrame, look: Look, window_us: float) -> set[str]:
    """Draws the events of one variant, one row per stream; returns the fills that it used."""
    style, factor = look.style(str(events["variant"].iloc[0])), _unit(window_us)[0]
    streams = sorted(events["stream"].unique())
    height = 0.76 / len(streams)
    fills = set()
    for event in as_rows(events[events["start_us"] < window_us]):
        fill = _fill(event)
        face, hatch, _ = FILLS[fill]
        fills.add(fill)
        place = row - 0.38 + height * (streams.index(event["stream"]) + 0.5)
        axes.barh(
            place,
            columns.number(event, "duration_us") / factor,
            height,
            left=columns.number(event, "start_us") / factor,
            lw=0.5,
            fc=face or style.colour,
            hatch=hatch if face else style.hatch,
            ec=INK if face or style.hatch else "white",
        )
    drawn_us = float((events["start_us"] + events["duration_us"]).max())
    end_us = min(window_us, drawn_us)
    if events["span_us"].iloc[0] > end_us * 1.001:
        axes.annotate(
            "▸",
            (end_us / factor, row),
            (-1, 0),
            textcoords="offset points",
            va="center",
            annotation_clip=False,
        )
    return fills


def _fill(event: Row) -> str:
    if event["kind"] == "kernel":
        return "kernel" if event["name"] == event["kernel"] else "other kernel"
    return str(event["name"] if event["name"] in FILLS else event["kind"])


def _unit(us: float) -> tuple[float, str]:
    """Returns a suitable unit for this time: its length in microseconds and its name."""
    return (1e6, "s") if us >= 1e6 else (1e3, "ms") if us >= 1e3 else (1.0, "µs")


def _time(us: float) -> str:
    factor, unit = _unit(us)
    return f"{number(us / factor)} {unit}"


def _columns(axes: Axes, rows: pd.DataFrame) -> None:
    shown = {
        "span": cells(rows, "span_us", _time),
        "launch": cells(rows, "launch_median_us", _time),
        "idle": cells(rows, "gap_median_us", lambda us: f"{number(us)} µs"),
        "longest idle": cells(rows, "gap_max_us", lambda us: f"{number(us)} µs"),
        "busy": cells(rows, "busy_pct", "{:.1f} %".format),
    }
    end = 0.08
    for header in ("busy",) if is_narrow() else shown:
        end = text_column(axes, header, shown[header], end, "right")


def _legend(axes: Axes, used: set[str]) -> None:
    """Draws a legend of the fills if a lane contains more than its longest kernel."""
    if used <= {"kernel"}:
        return
    fills = [fill for name, fill in FILLS.items() if name in used]
    legend_above(
        axes, [Patch(fc=f or "#7f7f7f", hatch=h, ec=INK, lw=0.5, label=name) for f, h, name in fills]
    )
