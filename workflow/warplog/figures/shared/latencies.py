"""What a load takes in a ring of a certain size, from two cases that differ in the number of loads only."""

import re

import pandas as pd

from warplog.tables.files import ORIGIN_COLUMNS
from warplog.tables.view import FigureTables

_CASE = re.compile(r"(.+)x(\d+)")  # 16Kix4096: the size of the ring, and the number of loads
_KEPT = ["family", "variant", "order", "is_baseline", "case", "size", "status", "gap"]
# KiB of SRAM of an SM, of which L1 has what shared memory does not take, and the largest share of shared memory (CUDA
# C++ Programming Guide, compute capabilities).
SRAM_KIB = {
    "sm_75": (96, 64), "sm_80": (192, 164), "sm_86": (128, 100), "sm_87": (192, 164), "sm_89": (128, 100),
    "sm_90": (256, 228), "sm_100": (256, 228), "sm_103": (256, 228), "sm_120": (128, 100), "sm_121": (128, 100),
}  # fmt: skip


def latencies(tables: FigureTables) -> pd.DataFrame:
    """Returns one row per variant and size of the ring that it supports: hop_ns and hop_cycles, or the gap.

    `case` is the one with more loads, whose SM clock counts.
    """
    hops: dict[str, dict[int, str]] = {}
    for case in tables.measurements["case"].unique():
        if match := _CASE.fullmatch(case):
            hops.setdefault(match[1], {})[int(match[2])] = case
    pieces = [_slopes(tables, by_hops) for by_hops in hops.values() if len(by_hops) > 1]
    columns = [*_KEPT, "hop_ns", "hop_cycles", "sm_mhz", *ORIGIN_COLUMNS]
    if not pieces:
        return pd.DataFrame(columns=columns)
    rows = pd.concat(pieces, ignore_index=True).reindex(columns=columns)
    return rows.sort_values(["order", "size"], kind="stable").reset_index(drop=True)


def _slopes(tables: FigureTables, by_hops: dict[int, str]) -> pd.DataFrame:
    """Returns the rows of one size, of which `by_hops` are the cases."""
    few, many = min(by_hops), max(by_hops)
    before, rows = tables.ladder(by_hops[few]), tables.ladder(by_hops[many])
    rows["gap"] = rows["gap"].where(rows["gap"] != "", before["gap"])
    ns = 1e3 * (rows["median_us"] - before["median_us"]) / (many - few)
    rows["hop_ns"] = ns.where((rows["gap"] == "") & (ns > 0))
    rows.loc[(rows["gap"] == "") & rows["hop_ns"].isna(), "gap"] = "n/a"
    rows["hop_cycles"] = rows["hop_ns"] * rows["sm_mhz"] * 1e-3
    return rows[~rows["status"].isin(["unsupported"])]


def short_bytes(size: float, space: str = "") -> str:
    """Formats a size in binary units: 16Ki for 16384."""
    for factor, unit in ((2**30, "Gi"), (2**20, "Mi")):
        if size >= factor:
            return f"{size / factor:.3g}{space}{unit}"
    return f"{size / 2**10:.3g}{space}Ki"
