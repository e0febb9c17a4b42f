"""Where does the time grow in steps although the work grows evenly? Do tiles and waves explain it?"""

import itertools
import json
import re

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from warplog.core.numbers import rate_unit
from warplog.figures.shared.labels import (
    MUTED,
    SideLabel,
    is_narrow,
    line_in,
    number,
    plot_width_in,
    side_labels,
    tick,
)
from warplog.figures.shared.style import Look, new_figure, styled
from warplog.metrics import METRICS
from warplog.tables import regimes
from warplog.tables.files import ORIGIN_COLUMNS, as_rows
from warplog.tables.view import FigureTables

NEEDS = ("listed",)
TITLE = "Tile and wave quantization"
NOTE = (
    "medians {regime}; thin lines: predicted from tiles and waves alone, time = started waves x time "
    "per wave at the size with the fullest waves, waves = blocks / (SMs x blocks per SM)"
)
_NEAR, _LEAST_STEP = 1.02, 1.1
LIMITS = [name for name in METRICS if name.startswith("occupancy_limit_")]


def data(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per variant and timed case: measured and predicted time, blocks, waves, or the gap.

    Only cases whose names differ from the headline case's name in nothing but digits are used.
    """
    timed = tables.measurements[["case", "size"]].drop_duplicates("case").sort_values(["size", "case"])
    timed = timed[timed["case"].map(_kind) == _kind(tables.case)]
    rows = pd.concat([tables.ladder(case).assign(size=size) for case, size in timed.itertuples(index=False)])
    rows = rows.sort_values(["order", "size"], kind="stable").reset_index(drop=True)
    rows.loc[(rows["gap"] == "") & rows["median_us"].isna(), "gap"] = "n/a"
    measured = ["median_us", "gflops"]
    rows[measured] = rows[measured].where(rows["gap"] == "")
    label = tables.variants["size_label"].iloc[0] if "size_label" in tables.variants else ""
    rows["size_label"] = label or "problem size"
    rows["regime"] = regimes.where_timed(as_rows(rows))
    pieces = [_waves(own.copy(), tables) for _, own in rows.groupby("variant", sort=False)]
    kept = [
        "family",
        "variant",
        "order",
        "is_baseline",
        "case",
        "size",
        "size_label",
        "status",
        "gap",
        *measured,
    ]
    columns = [
        *kept,
        "regime",
        "blocks",
        "blocks_per_sm",
        "waves",
        "predicted_us",
        "predicted_gflops",
        *ORIGIN_COLUMNS,
    ]
    return pd.concat(pieces, ignore_index=True).reindex(columns=columns)


def _kind(case: str) -> str:
    return re.sub(r"\d+", "#", case)


def _waves(own: pd.DataFrame, tables: FigureTables) -> pd.DataFrame:
    """Returns one variant's rows with blocks, waves and the time predicted from them."""
    variant = str(own["variant"].iloc[0])
    parameters = tables.variants.loc[tables.variants["variant"] == variant, "parameters"].iloc[0]
    rows_of_tile = json.loads(parameters or "{}").get("BM", 0)
    per_sm, columns = _launch(tables, variant, rows_of_tile)
    sms = tables.peak("sms")
    if not rows_of_tile or not per_sm * sms > 0:
        return own
    own["blocks"] = columns * np.ceil(own["size"] / rows_of_tile)
    own["blocks_per_sm"], own["waves"] = per_sm, own["blocks"] / (sms * per_sm)
    begun = np.ceil(own["waves"])
    filled = (own["waves"] / begun).where(own["median_us"].notna())
    if filled.notna().any():
        best = filled.idxmax()
        own["predicted_us"] = begun * float(own.loc[best, "median_us"] / begun[best])
        own["predicted_gflops"] = own["gflops"] * own["median_us"] / own["predicted_us"]
    own.loc[own["gap"] != "", ["blocks", "blocks_per_sm", "waves", "predicted_us", "predicted_gflops"]] = (
        np.nan
    )
    return own


def _launch(tables: FigureTables, variant: str, rows_of_tile: int) -> tuple[float, float]:
    """Returns blocks per SM and columns of tiles, from the counters of a captured case, else NaN and 1."""
    rows = tables.metrics[(tables.metrics["variant"] == variant) & tables.metrics["value"].notna()]
    limits = rows.loc[rows["metric"].isin(LIMITS), "value"]
    grid = rows[(rows["metric"] == "grid_blocks") & (rows["case"] == tables.case)]
    size = tables.measurements.loc[tables.measurements["case"] == tables.case, "size"]
    if grid.empty or not rows_of_tile or size.empty:
        return (float(limits.min()) if len(limits) else np.nan), 1.0
    return float(limits.min()), float(grid["value"].iloc[0] / np.ceil(size.iloc[0] / rows_of_tile))


def _finding(data: pd.DataFrame) -> str:
    """Returns the largest step in time between sizes within 2 % of each other; the title without one below 10 %.

    Of the sizes with the same number of blocks, the one with the fullest tiles counts: a step adds a whole block.
    """
    steps: list[tuple[float, str, float, float]] = []
    for name, own in data[data["gap"] == ""].groupby("variant", sort=False):
        filled = own.assign(blocks=own["blocks"].fillna(own["size"])).sort_values("size")
        filled = filled.drop_duplicates("blocks", keep="last")
        times = filled[["size", "median_us"]].to_numpy(dtype=float)
        for (before, us_before), (size, us) in itertools.pairwise(times):
            if size <= _NEAR * before:
                steps.append((us / us_before, str(name), size, before))
    factor, variant, size, before = max(steps, default=(0.0, "", 0.0, 0.0))
    if factor < _LEAST_STEP:
        return TITLE
    return f"{TITLE}: {variant} takes {number(factor)} times as long at {size:.0f} as at {before:.0f}"


@styled
def draw(data: pd.DataFrame, look: Look) -> Figure:
    """Draws speed and time over the size, predictions as thin lines, whole waves as dotted lines."""
    names = list(dict.fromkeys(data["variant"]))
    body = max(4.6, 0.75 + 2 * line_in() * len(names))
    note = NOTE.format(regime=data.iloc[0]["regime"])
    figure = new_figure(f"{_finding(data)} · {data.iloc[0]['family']}", body, note, look, timed=True)
    grid = figure.subplots(2, 1, sharex=True)
    unit, factor = rate_unit("GFLOP/s", data["gflops"])
    _lines(grid[0], data, "gflops", factor, look)
    _lines(grid[1], data, "median_us", 1.0, look)
    size_label = data.iloc[0]["size_label"]
    grid[0].set_ylabel(f"speed ({unit})")
    grid[0].set_xlabel(size_label)
    grid[1].set(ylabel=f"median time {data.iloc[0]['regime']} (µs)", xlabel=size_label)
    last = data[data["gap"] == ""].groupby("variant").last()
    labels = []
    for name in names:
        style = look.style(name)
        if name not in last.index:
            gap = str(data.loc[data["variant"] == name, "gap"].iloc[0])
            labels.append(SideLabel(np.nan, np.nan, f"{name}: {gap}"[:40]))
            continue
        end = last.loc[name]
        words = f"{name[:32]}{_blocks_per_sm(end)}"
        labels.append(SideLabel(end["size"], end["median_us"], words, style.edge, style.marker, style.dashes))
    side_labels(grid[1], labels, body / 2 - 0.4, plot_width_in(labels))
    return figure


def _blocks_per_sm(end: pd.Series) -> str:
    per_sm = end["blocks_per_sm"]
    return f", {per_sm:.0f} block{'' if per_sm == 1 else 's'} per SM" if np.isfinite(per_sm) else ""


def _lines(axes: Axes, data: pd.DataFrame, column: str, factor: float, look: Look) -> None:
    predicted = column.replace("median", "predicted") if column == "median_us" else "predicted_gflops"
    for name, rows in data.groupby("variant", sort=False):
        style = look.style(str(name))
        axes.plot(
            rows["size"],
            rows[column] * factor,
            color=style.edge,
            marker=style.marker,
            ms=3.5,
            lw=1.2,
            dashes=style.dashes or (1, 0),
        )
        axes.plot(rows["size"], rows[predicted] * factor, color=style.edge, lw=0.6)
    first = data[data["waves"].notna()].groupby("variant", sort=False)
    for _, rows in first:
        row = rows.iloc[-1]
        step = row["size"] / row["waves"] if row["waves"] > 0 else np.inf
        if row["waves"] < 8:
            for wave in range(1, int(row["waves"]) + 1):
                axes.axvline(wave * step, color=MUTED, lw=0.6, ls=":")
    axes.set_ylim(bottom=0)
    if is_narrow():
        axes.xaxis.set_major_locator(MaxNLocator(4))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: tick(value))
    axes.grid(axis="y")
