"""Do copies overlap with kernels, or do the GPU's engines take turns?"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from warplog.core import columns
from warplog.core.columns import Cell
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
from warplog.tables.files import ORIGIN_COLUMNS, as_rows
from warplog.tables.view import FigureTables

NEEDS = ("listed",)
TITLE = "Overlap of copies and kernels in one launch"
NOTE = (
    "nsys, hot: launches back to back, of which the one with the median wall time is shown; wall: first start to last "
    "end; longest: time of the busiest engine in percent of wall, 100 % is ideal; hidden: share of the copy time in "
    "which another engine was active"
)
JOINED = "; gaps between the narrow pieces of {variants} are not drawn"
NARROW = 1 / 150  # of the axis
ENGINES = {  # kind or name in the trace: position in the row, face (None: the variant's), hatch, legend
    "Host-to-Device": (0, "white", "....", "copy to the device"),
    "kernel": (1, None, "", "kernel, in the variant's colour"),
    "Device-to-Host": (2, "white", "////", "copy to the host"),
}
METRICS = ["wall_us", "longest_engine_pct", "copy_hidden_pct"]


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per kernel and copy of one launch of each variant at the profiled case, or for a gap.

    The launch is the one with the median wall time; start_us counts from its first event. METRICS are medians
    over all captured launches.
    """
    seen = set(tables.timeline["case"])
    others = (c for c in tables.profile_cases if c in seen)
    case = tables.case if tables.case in seen else next(others, tables.case)
    events = tables.timeline[tables.timeline["case"] == case]
    engine = events["name"].where(events["kind"] == "memcpy", events["kind"])
    events = events.assign(engine=engine)[engine.isin(list(ENGINES))]
    rows = tables.metrics[(tables.metrics["case"] == case) & tables.metrics["metric"].isin(METRICS)]
    values = rows.pivot_table(index="variant", columns="metric", values="value", aggfunc="first")
    kept = ["family", "variant", "order", "is_baseline", "case", "status", "gap"]
    pieces = []
    for row in as_rows(tables.ladder(case)):
        own = events[events["variant"] == row["variant"]]
        shared = {k: row[k] for k in [*kept, *ORIGIN_COLUMNS]}
        if row["gap"] or own.empty:
            pieces.append(pd.DataFrame([shared | {"gap": row["gap"] or "n/a"}]))
            continue
        own = _median_launch(own)
        shared |= as_rows(values.loc[[row["variant"]]])[0] if row["variant"] in values.index else {}
        pieces.append(own[["engine", "stream", "start_us", "duration_us"]].assign(**shared))
    columns = [*kept, "engine", "stream", "start_us", "duration_us", *METRICS, *ORIGIN_COLUMNS]
    rows = pd.concat(pieces, ignore_index=True).reindex(columns=columns)
    return rows if (rows["gap"] == "").any() else rows.iloc[:0]


def _median_launch(events: pd.DataFrame) -> pd.DataFrame:
    """Returns the events of the launch with the (lower) median wall time."""
    spans = {
        launch: float((own["start_us"] + own["duration_us"]).max() - own["start_us"].min())
        for launch, own in events.groupby("launch")
    }
    order = sorted(spans, key=spans.__getitem__)
    events = events[events["launch"] == order[(len(order) - 1) // 2]]
    events = events.sort_values(["start_us", "stream"], kind="stable")
    return events.assign(start_us=events["start_us"] - events["start_us"].min())


def _finding(rows: pd.DataFrame) -> str:
    """Returns the shortest wall time beside that of the baseline; the title without a finding if one is unknown."""
    timed = as_rows(rows[(rows["gap"] == "") & rows["wall_us"].notna()])
    before = next((row for row in timed if row["is_baseline"]), None)
    if before is None or len(timed) < 2:
        return TITLE
    best = min(timed, key=lambda row: columns.number(row, "wall_us"))
    if best["variant"] == before["variant"]:
        return f"{TITLE}: none is faster than {before['variant']}"
    best_ms, before_ms = (columns.number(row, "wall_us") / 1e3 for row in (best, before))
    times = f"{number(best_ms)} ms instead of {number(before_ms)} ms"
    return f"Overlap of copies and kernels: {best['variant']} takes {times} (traced, back to back)"


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws three lanes per variant on one time axis: copies to the device, kernels, copies to the host."""
    rows = data.drop_duplicates("variant").reset_index(drop=True)
    first, good = rows.iloc[0], rows["gap"] == ""
    end_us = float((data["start_us"] + data["duration_us"]).max()) if good.any() else 1e3
    lanes = {
        str(v): _joined(own, NARROW * end_us) for v, own in data[data["engine"].notna()].groupby("variant")
    }
    joined = [name for name, own in lanes.items() if len(own) < (data["variant"] == name).sum()]
    figure = new_figure(
        f"{_finding(rows)} · {first['family']}, case {first['case']}",
        0.84 + 2 * row_in() * len(rows),
        NOTE + (JOINED.format(variants=", ".join(joined)) if joined else ""),
        look,
    )
    axes = figure.add_subplot()
    bar_rows(axes, rows["variant"], rows["is_baseline"])
    axes.set(xlim=(0, end_us * 1e-3 * 1.002), xlabel="time since the launch's first event (ms)")
    for place, row in enumerate(as_rows(rows)):
        if gap := columns.text(row, "gap"):
            gap_note(axes, place, gap)
        else:
            _lanes(axes, place, lanes[str(row["variant"])], look)
    if not good.any():
        axes.set_xticks([])
        return figure
    _columns(axes, rows)
    patches = [Patch(fc=f or "#7f7f7f", hatch=h, ec=INK, lw=0.5, label=w) for _, f, h, w in ENGINES.values()]
    legend_above(axes, patches)
    return figure


def _joined(events: pd.DataFrame, least_us: float) -> pd.DataFrame:
    """Merges events of an engine if they are mostly shorter than `least_us`; gaps of half their length are kept."""
    typical = events.groupby("engine")["duration_us"].median()
    runs: list[dict[str, Cell]] = []
    for event in as_rows(events.sort_values(["engine", "start_us"], kind="stable")):
        last = runs[-1] if runs and runs[-1]["engine"] == event["engine"] else {}
        usual_us = float(typical.loc[str(event["engine"])])
        start_us, first_us = columns.number(event, "start_us"), columns.number(last, "start_us")
        gap_us = start_us - first_us - columns.number(last, "duration_us")
        if usual_us < least_us and gap_us < usual_us / 2:  # no number without a last one
            last["duration_us"] = start_us + columns.number(event, "duration_us") - first_us
        else:
            runs.append(event)
    return pd.DataFrame(runs)


def _lanes(axes: Axes, row: int, events: pd.DataFrame, look: Look) -> None:
    style = look.style(str(events["variant"].iloc[0]))
    height = 0.8 / len(ENGINES)
    for event in as_rows(events):
        place, face, hatch, _ = ENGINES[str(event["engine"])]
        axes.barh(
            row - 0.4 + height * (place + 0.5),
            columns.number(event, "duration_us") * 1e-3,
            height * 0.92,
            left=columns.number(event, "start_us") * 1e-3,
            fc=face or style.colour,
            hatch=hatch,
            lw=0.4,
            ec=INK if face or style.hatch else "white",
        )


def _columns(axes: Axes, rows: pd.DataFrame) -> None:
    end = text_column(
        axes, "wall", cells(rows, "wall_us", lambda us: f"{number(us / 1e3)} ms"), 0.08, "right"
    )
    if is_narrow():
        return
    for header, column in (("longest", "longest_engine_pct"), ("hidden", "copy_hidden_pct")):
        end = text_column(axes, header, cells(rows, column, lambda pct: f"{number(pct)} %"), end, "right")
