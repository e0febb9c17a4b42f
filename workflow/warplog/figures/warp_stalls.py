"""What do the warps of each variant wait for between two instructions?"""

from collections import Counter

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from warplog.core import columns
from warplog.core.columns import Row
from warplog.figures.shared.labels import (
    INK,
    bar_rows,
    font_pt,
    gap_notes,
    is_narrow,
    legend_above,
    number,
    row_in,
    text_column,
)
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.metrics import NO_STALL, dominant_stall
from warplog.tables.files import ORIGIN_COLUMNS, as_rows
from warplog.tables.view import FigureTables

NEEDS = ("counters",)
TITLE = "Warp states and stalls"
NOTE = (
    "states of a warp between two instructions (ncu, longest kernel of the case); cycles: per issued instruction; no "
    "stalls: selected (the warp issues), not_selected (it is ready to issue)"
)
NOT_NAMED = "; states below 1 % have no key"
LEAST_PCT = 1.0  # states with less than this share in every bar are drawn, but not in the legend
REASONS = {  # colour and hatch of each reason in every figure: hue by cause; hue is never the only difference
    "selected": ("#ffffff", ""),
    "not_selected": ("#d0d0d0", ""),
    "long_scoreboard": ("#0b4f8a", ""),  # blue: memory
    "lg_throttle": ("#6aaed6", "////"),
    "tex_throttle": ("#6aaed6", "oo"),
    "drain": ("#6aaed6", "...."),
    "short_scoreboard": ("#e69f00", ""),  # yellow: shared memory and special functions
    "mio_throttle": ("#f7d774", "...."),
    "barrier": ("#c08ad6", "xxxx"),  # purple: waiting for others
    "membar": ("#c08ad6", "||||"),
    "gmma": ("#c08ad6", "++++"),
    "sleeping": ("#ead9f2", "////"),
    "math_pipe_throttle": ("#1b7f5c", ""),  # green: arithmetic
    "wait": ("#a5dcc4", "\\\\\\\\"),
    "dispatch_stall": ("#a5dcc4", "++++"),
    "branch_resolving": ("#f2d0cb", "||||"),  # red: instructions
    "no_instruction": ("#d98880", "----"),
    "imc_miss": ("#f2d0cb", "xxxx"),
    "misc": ("#8a8a8a", ""),
    "other": ("#8a8a8a", "\\\\\\\\"),
}


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per variant and counted state, or one row for a gap.

    cycles_per_issue is warp cycles per issued instruction, total_cycles_per_issue their sum over states,
    share_pct the state's share of that sum; dominant_stall is the longest state that is a stall.
    """
    named = tables.metrics["metric"].str.extract(r"^stall_(\w+)_cycles_per_issue$")[0]
    reasons = sorted(set(named.dropna()))
    names = {f"stall_{reason}_cycles_per_issue": reason for reason in reasons}
    wide = tables.counters([*names, "warp_cycles_per_issue"]).rename(columns=names)
    stalls = wide[[r for r in reasons if r not in NO_STALL]]
    counted = stalls.notna().any(axis=1)
    wide["gap"] = wide["gap"].where(counted | (wide["gap"] != ""), "n/a")
    wide["dominant_stall"] = [dominant_stall(_named(row)) or "" for row in as_rows(stalls)]
    wide["total_cycles_per_issue"] = wide[reasons].sum(axis=1, min_count=1)
    keys = ["family", "variant", "order", "is_baseline", "case", "kernel", "status", "gap"]
    keys += ["warp_cycles_per_issue", "total_cycles_per_issue", "dominant_stall", *ORIGIN_COLUMNS]
    long = wide.melt(keys, reasons, "state", "cycles_per_issue")
    long = long[long["cycles_per_issue"].notna() & (long["gap"] == "")]
    gaps = wide.loc[wide["gap"] != "", keys].assign(state="")
    long = pd.concat([long, gaps]) if len(gaps) else long
    long["share_pct"] = 100 * long["cycles_per_issue"] / long["total_cycles_per_issue"]
    rank = {state: place for place, state in enumerate(["", *REASONS])}
    long = long.assign(rank=long["state"].map(rank)).sort_values(["order", "rank", "state"], kind="stable")
    kept = [*keys[:-4], "state", "cycles_per_issue", "share_pct", *ORIGIN_COLUMNS]
    return long[kept].reset_index(drop=True)


def _named(cycles: Row) -> Row:
    """Returns one launch's states under the names of their shares; cycles per issue rank the states as shares do."""
    return {f"stall_{state}_pct": value for state, value in cycles.items()}


def _finding(rows: pd.DataFrame) -> str:
    """Returns the main stall of most variants; the title without a finding if no state is known."""
    stalls = [str(stall) for stall in rows.loc[rows["gap"] == "", "dominant_stall"] if stall]
    if not stalls:
        return TITLE
    stall, count = Counter(stalls).most_common(1)[0]
    return f"{TITLE}: {stall} is the largest stall in {count} of {len(stalls)} variants"


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws the share of each state as stacked bars; total cycles and the main stall beside them."""
    rows = data.drop_duplicates("variant").reset_index(drop=True)
    totals = rows["total_cycles_per_issue"].dropna()
    states = [s for s in REASONS if (data["state"] == s).any()]
    named = [s for s in states if data.loc[data["state"] == s, "share_pct"].max() >= LEAST_PCT]
    first = rows.iloc[0]
    body = 0.9 + row_in() * len(rows)
    title = f"{_finding(rows)} · {first['family']}, case {first['case']}"
    figure = new_figure(title, body, NOTE + NOT_NAMED * (len(named) < len(states)), look)
    axes = figure.add_subplot()
    bar_rows(axes, rows["variant"], rows["is_baseline"])
    _stacks(axes, data, rows, states)
    axes.set_xlabel("share of a warp's cycles (%)")
    axes.set_xlim(0, 100)
    if totals.empty:
        axes.set_xticks([])
    if len(totals):
        _columns(axes, data, rows)
        handles = [Patch(fc=REASONS[s][0], hatch=REASONS[s][1], ec=INK, lw=0.5, label=s) for s in named]
        legend_above(axes, handles)
    return figure


def _stacks(axes: Axes, data: pd.DataFrame, rows: pd.DataFrame, states: list[str]) -> None:
    """Draws the bars; segments that are wide enough show their value."""
    lengths = data.groupby(["variant", "state"])["share_pct"].sum().unstack().reindex(rows["variant"])
    start = np.zeros(len(rows))
    least = 15.0 if is_narrow() else 7.5
    for state in states:
        length = lengths[state].fillna(0).to_numpy()
        fill, hatch = REASONS[state]
        some = np.flatnonzero(length > 0)
        axes.barh(some, length[some], left=start[some], height=0.74, color=fill, hatch=hatch, ec=INK, lw=0.5)
        ink = "white" if np.dot(to_rgb(fill), (0.2126, 0.7152, 0.0722)) < 0.45 else INK
        for row in np.flatnonzero(length > least):
            text = f"{length[row]:.0f}"
            patch = {"boxstyle": "square,pad=0.12", "fc": fill, "ec": "none"} if hatch else None
            axes.text(
                start[row] + length[row] / 2,
                int(row),
                text,
                ha="center",
                va="center",
                color=ink,
                fontsize=font_pt(),
                bbox=patch,
            )
        start += length
    gap_notes(axes, rows["gap"])


def _columns(axes: Axes, data: pd.DataFrame, rows: pd.DataFrame) -> None:
    shares = data.set_index(["variant", "state"])["share_pct"]
    totals, causes = [], []
    for row in as_rows(rows):
        good = row["gap"] == ""
        totals.append(number(columns.number(row, "total_cycles_per_issue")) if good else "")
        cause = columns.text(row, "dominant_stall")
        causes.append(f"{cause} {shares[str(row['variant']), cause]:.0f} %" if good and cause else "")
    end = text_column(axes, "cycles", totals, 0.08, "right")
    if not is_narrow():
        text_column(axes, "main stall", causes, end)
