"""How many warps, and how many independent instructions in each, does the peak rate need?"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from warplog.figures.shared.labels import INK, MUTED, fit, name_in, number, row_in
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.tables.files import ORIGIN_COLUMNS, as_rows
from warplog.tables.view import FigureTables

NEEDS = ("listed", "flops")
TITLE = "Share of the FP32 peak"
NOTE = "FLOPs of the algorithm over those of all FP32 units at the SM clock of the launches, in %"
LEAST = 95  # percent that count as the peak


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per variant and timed case: the rate, and the peak at the SM clock that was measured."""
    timed = tables.measurements[["case", "size"]].drop_duplicates("case").sort_values("size")
    rows = pd.concat([tables.ladder(case).assign(size=size) for case, size in timed.itertuples(index=False)])
    rows = rows.sort_values(["order", "size"], kind="stable").reset_index(drop=True)
    per_mhz = tables.peak("fp32_tflops_peak") / _peak_mhz(tables)
    rows["peak_gflops"] = 1e3 * per_mhz * rows["sm_mhz"]
    rows["peak_pct"] = (100 * rows["gflops"] / rows["peak_gflops"]).where(rows["gap"] == "")
    rows.loc[(rows["gap"] == "") & rows["peak_pct"].isna(), "gap"] = "n/a"
    label = tables.variants["size_label"].iloc[0] if "size_label" in tables.variants else ""
    rows["size_label"] = label or "problem size"
    kept = ["family", "variant", "order", "is_baseline", "case", "size", "size_label", "status", "gap"]
    return rows.reindex(columns=[*kept, "gflops", "sm_mhz", "peak_gflops", "peak_pct", *ORIGIN_COLUMNS])


def _peak_mhz(tables: FigureTables) -> float:
    mhz = tables.peak("fp32_peak_mhz")
    return mhz if mhz > 0 else tables.peak("max_sm_mhz")


def _finding(data: pd.DataFrame) -> str:
    """Returns the smallest size at which a variant reaches the peak, and the first such variant; else the title."""
    enough = data[data["peak_pct"] >= LEAST].sort_values(["size", "order"])
    if enough.empty:
        return TITLE
    first = enough.iloc[0]
    share, size = number(first["peak_pct"]), f"{first['size']:.0f} {first['size_label']}"
    return f"{TITLE}: {first['variant']} reaches {share} % with {size}"


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws a map with a row per variant and a column per size, darker the nearer to the peak."""
    names = list(dict.fromkeys(data["variant"]))
    sizes = sorted(data["size"].unique())
    figure = new_figure(
        f"{_finding(data)} · {data.iloc[0]['family']}", 0.6 + 1.4 * row_in() * len(names), NOTE, look
    )
    axes = figure.add_subplot()
    shares = (
        data.pivot(index="variant", columns="size", values="peak_pct").loc[names, sizes].to_numpy(dtype=float)
    )
    axes.pcolormesh(shares, cmap="Blues", vmin=0, vmax=100, edgecolors="white", linewidth=1.5)
    for row in as_rows(data):
        place = sizes.index(row["size"]) + 0.5, names.index(str(row["variant"])) + 0.5
        share = shares[int(place[1]), int(place[0])]
        missing = not np.isfinite(share)
        axes.annotate(
            fit(str(row["gap"]), 0.5) if missing else f"{share:.0f}",
            place,
            ha="center",
            va="center",
            style="italic" if missing else "normal",
            color=MUTED if missing else "white" if share > 55 else INK,
        )
    axes.set_xticks(np.arange(len(sizes)) + 0.5, [f"{size:.0f}" for size in sizes])
    axes.set_yticks(np.arange(len(names)) + 0.5, [fit(name, name_in()) for name in names])
    axes.set_xlabel(str(data.iloc[0]["size_label"]))
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure
