"""What do the warps of one SM do, and who waits for whom?"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from warplog.figures.shared.labels import (
    MUTED,
    gap_note,
    is_narrow,
    legend_above,
    legend_rows,
    line_in,
    number,
)
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.metrics.tracks import WORKING, Span, bubbles
from warplog.tables.files import ORIGIN_COLUMNS, as_rows
from warplog.tables.view import FigureTables, gap_text

NEEDS = ("timelines",)
TITLE = "Warps of one SM over time"
NOTE = (
    "marks inside the kernel, in a build of its own; one launch after a warm-up (hot: warm L2); the SM is the one "
    "whose share of waiting is the median over the SMs; overhead: how much longer the build with marks takes at rest "
    "(in parentheses: the same build against itself)"
)
MOST_LANES = 12
# Region: colour of Okabe and Ito, safe for colour-blind readers, and what it means.
LOOKS = {
    "load": ("#0072B2", "load"),
    "wait": ("#e3e3e3", "wait for data or a free stage"),
    "compute": ("#009E73", "compute"),
    "store": ("#D55E00", "store"),
    "handover": ("#CC79A7", "hand-over of partial sums"),
    "lookback": ("#E69F00", "wait for the tiles before"),
    "sync": ("#9a9a9a", "wait for other warps"),
}
_STEPS, _BLOCKS = 14, 3  # length of the window: steps of a consumer, or blocks if the kernel has no steps
_NUMBERS = [
    "sm_mhz", "overhead_pct", "noise_pct", "region_us", "lead_steps", "wait_pct", "bubble_us", "bubbles", "lookback_us",
]  # fmt: skip
_ROWS = [
    "sm", "slot", "block", "warp", "role", "region", "start_us", "duration_us", "start_clocks", "duration_clocks",
]  # fmt: skip


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per region in the drawn window of each captured variant, or one for a gap; none without regions.

    The window is around a bubble at a tile end, if possible one with a hand-over of partial sums: of these, the one
    whose length is closest to their median; `shown_us` is its length. `lane` is the row in which a region is drawn,
    from 0; `lanes` is how many warps of the SM have regions.
    """
    order = dict(zip(tables.variants["variant"], tables.variants["order"], strict=True))
    captured = tables.launches[tables.launches["variant"].isin(list(order))]
    captured = captured.sort_values("variant", key=lambda names: names.map(order), kind="stable")
    pieces = []
    for launch in as_rows(captured):
        shared = {name: launch.get(name) for name in ["family", "variant", "case", "status", *ORIGIN_COLUMNS]}
        gap = gap_text(str(launch["status"]), str(launch["reason"]))
        tracks = tables.tracks[tables.tracks["variant"] == launch["variant"]]
        if gap or tracks.empty:
            pieces.append(pd.DataFrame([shared | {"gap": gap or "n/a"}]))
            continue
        facts = {name: launch.get(name) for name in _NUMBERS}
        begin, end, gap_clocks = _window(tracks)
        facts["shown_us"] = gap_clocks * _us_per_clock(tracks)
        shown = _in_window(_in_lanes(tracks), begin, end)
        pieces.append(shown[[*_ROWS, "lane", "lanes"]].assign(**shared, **facts, gap=""))
    columns = ["family", "variant", "case", "status", "gap", *_ROWS, "lane", "lanes", *_NUMBERS, "shown_us"]
    rows = pd.concat(pieces, ignore_index=True) if pieces else pd.DataFrame()
    rows = rows.reindex(columns=[*columns, *ORIGIN_COLUMNS])
    return rows if (rows["gap"] == "").any() else rows.iloc[:0]


def _window(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Returns begin and end of the time to draw and the length of the bubble in it (NaN without one), in clocks."""
    start = rows["start_clocks"].to_numpy(float)
    end = start + rows["duration_clocks"].to_numpy(float)
    low, high = float(start.min()), float(end.max())
    own = rows[rows["role"].isin(WORKING)]
    spans = [
        Span(str(region), int(begin), int(begin + length))
        for region, begin, length in own[["region", "start_clocks", "duration_clocks"]].itertuples(
            index=False
        )
    ]
    steps = [span.clocks for span in spans if span.region == "compute"]
    length = np.nan
    if gaps := bubbles(spans):
        handed = [(s.begin, s.end) for s in spans if s.region == "handover"]
        best = _typical([b for b in gaps if any(s < b[1] and e > b[0] for s, e in handed)] or gaps)
        length = float(best[1] - best[0])
        width = max(_STEPS * float(np.median(steps)), 2.5 * length)
        middle = (best[0] + best[1]) / 2
    else:
        blocks = rows.assign(end=end).groupby(["slot", "block"])
        lengths = blocks["end"].max() - blocks["start_clocks"].min()
        width = _STEPS * float(np.median(steps)) if steps else _BLOCKS * float(lengths.median())
        middle = (low + high) / 2
    begin = max(low, min(middle - width / 2, high - width))
    return begin, min(high, begin + width), length


def _typical(spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Returns the span whose length is closest to the median; the first of several."""
    middle = float(np.median([end - begin for begin, end in spans]))
    return min(spans, key=lambda span: abs(span[1] - span[0] - middle))


def _us_per_clock(rows: pd.DataFrame) -> float:
    return float(rows["duration_us"].sum() / max(float(rows["duration_clocks"].sum()), 1.0))


def _in_window(rows: pd.DataFrame, begin: float, end: float) -> pd.DataFrame:
    """Returns the regions between two clocks; those that reach beyond are cut."""
    start = rows["start_clocks"].astype(float)
    first, last = start.clip(begin, end), (start + rows["duration_clocks"].astype(float)).clip(begin, end)
    per_clock = _us_per_clock(rows)
    cut = rows.assign(
        start_us=rows["start_us"] + (first - start) * per_clock,
        duration_us=(last - first) * per_clock,
        start_clocks=first.round().astype("int64"),
        duration_clocks=(last - first).round().astype("int64"),
    )
    return cut[last > first]


def _in_lanes(rows: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of the warps to draw with their lane; of too many warps, one per slot and kind."""
    kinds = (
        rows.groupby(["slot", "warp"])["region"]
        .agg(lambda regions: ",".join(sorted(set(regions))))
        .reset_index()
    )
    roles = rows.drop_duplicates(["slot", "warp"])[["slot", "warp", "role"]]
    kinds = kinds.merge(roles, on=["slot", "warp"])
    chosen = kinds if len(kinds) <= MOST_LANES else kinds.drop_duplicates(["slot", "role", "region"])
    chosen = chosen.sort_values(["slot", "warp"]).head(MOST_LANES).reset_index(drop=True)
    chosen = chosen.assign(lane=chosen.index, lanes=len(kinds))
    return rows.merge(chosen[["slot", "warp", "lane", "lanes"]], on=["slot", "warp"])


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws a panel per variant and a lane per warp; time in microseconds below and in clocks above."""
    groups = [rows for _, rows in data.groupby("variant", sort=False)]
    heights = [line_in() * (1 + max(1, rows["lane"].nunique())) + 0.75 for rows in groups]
    about = "".join(f"; {_about(rows)}" for rows in groups if not rows["gap"].iloc[0])
    title = f"{_finding(groups)} · {data['family'].iloc[0]}"
    figure = new_figure(title, sum(heights) + 0.2, NOTE + about, look)
    panels = figure.subplots(len(groups), 1, height_ratios=heights, squeeze=False)[:, 0]
    used = [entry for name, entry in LOOKS.items() if (data["region"] == name).any()]
    legend_above(panels[0], [Patch(fc=colour, label=meaning) for colour, meaning in used])
    above = "\n" * (1 + legend_rows([meaning for _, meaning in used]))  # makes room for the legend
    for axes, rows in zip(panels, groups, strict=True):
        axes.set_title(f"{above if axes is panels[0] else ''}{rows['variant'].iloc[0]}", loc="left", pad=6)
        _panel(axes, rows)
    return figure


def _finding(groups: Sequence[pd.DataFrame]) -> str:
    """Returns how long consumers wait, or the longest look-back; the title without a finding if neither is known."""
    first = [rows.iloc[0] for rows in groups if not rows["gap"].iloc[0]]
    waiting = [float(row["wait_pct"]) for row in first if row["wait_pct"] > 0]
    if waiting:
        ends = dict.fromkeys((number(min(waiting)), number(max(waiting))))
        return f"{TITLE}: {_who(groups)} wait {' to '.join(ends)} % of their time"
    backs = [float(row["lookback_us"]) for row in first if row["lookback_us"] > 0]
    return f"{TITLE}: a look-back takes {number(max(backs))} µs" if backs else TITLE


def _about(rows: pd.DataFrame) -> str:
    """Returns a variant's numbers, as far as its kernel has such regions."""
    first, shown = rows.iloc[0], int(rows["lane"].nunique())
    which = f"{shown} of {first['lanes']:.0f}" if shown < first["lanes"] else f"{shown}"
    ahead = first["lead_steps"]
    parts = [f"producer {ahead:.0f} step{'' if ahead == 1 else 's'} ahead"] if pd.notna(ahead) else []
    if first["wait_pct"] > 0:
        parts += [f"{_who([rows])} wait {number(first['wait_pct'])} % of their time"]
    parts += [_gap(rows)] if pd.notna(first["bubble_us"]) else []
    parts += [f"look-back {number(first['lookback_us'])} µs"] if pd.notna(first["lookback_us"]) else []
    parts += [f"mean interval {number(first['region_us'])} µs"]
    parts += [f"overhead {first['overhead_pct']:.2f} % ({first['noise_pct']:.2f} %)".replace("-", "−")]
    return (
        f"{first['variant']} (case {first['case']}, SM {first['sm']:.0f}, {which} warps): {', '.join(parts)}"
    )


def _who(groups: Sequence[pd.DataFrame]) -> str:
    """Returns what the warps that compute are called in these panels."""
    waiting = [rows for rows in groups if rows["gap"].iloc[0] == "" and rows["wait_pct"].iloc[0] > 0]
    return "consumers" if all((rows["role"] == "consumer").any() for rows in waiting) else "warps"


def _gap(rows: pd.DataFrame) -> str:
    """Returns how long no warp computes at a tile end: the median, of how many, and the one in the picture."""
    first, handed = rows.iloc[0], (rows["region"] == "handover").any()
    name = "gap in computing at a tile end or a hand-over" if handed else "pipeline bubble at a tile end"
    if not first["bubbles"] > 1:
        return f"{name} {number(first['bubble_us'])} µs"
    shown = f"the one shown: {number(first['shown_us'])} µs"
    return f"{name} {number(first['bubble_us'])} µs (median of {first['bubbles']:.0f}, {shown})"


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    axes.spines["left"].set_visible(False)
    if rows["gap"].iloc[0]:
        axes.set(xticks=[], yticks=[], ylim=(0.5, -0.5))
        axes.spines["bottom"].set_visible(False)
        gap_note(axes, 0, str(rows["gap"].iloc[0]))
        return
    lanes = rows.drop_duplicates("lane").sort_values("lane")
    axes.set_yticks(range(len(lanes)), _names(lanes, lanes["slot"].nunique() > 1))
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    begin, end = float(rows["start_us"].min()), float((rows["start_us"] + rows["duration_us"]).max())
    for region, lane, start, length in rows[["region", "lane", "start_us", "duration_us"]].itertuples(
        index=False
    ):
        # A white edge separates steps that follow each other; a short region gets one in its own colour.
        colour, is_short = LOOKS[str(region)][0], length < (end - begin) / 100
        edge = colour if is_short or region == "wait" else "white"
        axes.barh(lane, length, 0.84, left=start, color=colour, ec=edge, lw=0.5, zorder=3 if is_short else 2)
    axes.set(
        xlim=(begin, end),
        xlabel="time (µs)" if is_narrow() else "time since the launch's first warp started (µs)",
    )
    first = rows.iloc[0]
    mhz = float(first["sm_mhz"])
    origin = float(first["start_us"] - first["start_clocks"] / mhz)

    def kiloclocks(us: Any) -> Any:
        return (us - origin) * mhz / 1e3

    def microseconds(kilo: Any) -> Any:
        return kilo * 1e3 / mhz + origin

    above = axes.secondary_xaxis("top", functions=(kiloclocks, microseconds))
    above.set_xlabel("thousand clocks of the SM", color=MUTED)
    if is_narrow():
        for axis in (axes.xaxis, above.xaxis):
            axis.set_major_locator(MaxNLocator(5))


def _names(lanes: pd.DataFrame, several: bool) -> Sequence[str]:
    columns = lanes[["slot", "role", "warp"]].itertuples(index=False)
    return [(f"slot {slot:.0f}, " if several else "") + f"{role} {warp:.0f}" for slot, role, warp in columns]
