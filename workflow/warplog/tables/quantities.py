"""Looks up the numbers of a campaign by name: columns of `measurements`, and metrics of captured or compiled kernels.

Claims and the probes of the oracle are judged by these numbers. A missing number has a reason instead of a value.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from warplog.core import remarks
from warplog.core.columns import MEASUREMENTS
from warplog.core.errors import WarplogError
from warplog.core.remarks import Remark
from warplog.metrics.kernels import bare_name, longest_kernel
from warplog.parsers.sass import matching
from warplog.tables import regimes
from warplog.tables.files import as_rows

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[str, str, str]
_TOTAL = "total_"


@dataclass(frozen=True)
class Found:
    """A number in its unit; if it is NaN, `reason` gives the cause ("" otherwise).

    `remarks` are those on the variant's row of `measurements` at the case, whose status is ok. `low` and `high` are
    the ends of the interval of a number that depends on a time, relative to `value`; both are 1 for other numbers. The
    intervals of two times that differ by less than the floor overlap.
    """

    value: float
    unit: str
    reason: str = ""
    remarks: Sequence[Remark] = ()
    low: float = 1.0
    high: float = 1.0


class Quantities:
    """The numbers in the tables `measurements` and `metrics` of one GPU.

    `floors` maps (family, variant, case, regime) to the smallest relative gap that counts, as in the table `floors`.
    """

    def __init__(
        self,
        measurements: "pd.DataFrame",
        metrics: "pd.DataFrame",
        floors: Mapping[tuple[str, str, str, str], float] | None = None,
    ) -> None:
        self._floors = floors or {}
        self._measured: dict[Key, dict[str, Any]] = {
            (str(row["family"]), str(row["variant"]), str(row["case"])): row for row in as_rows(measurements)
        }
        # nsys numbers the kernels of a launch differently from ncu, so only its metrics of whole launches are used.
        metrics = metrics[metrics["metric"] != "nsys_kernel_duration_us"]
        self._rows = metrics
        groups = metrics.groupby(["family", "variant", "case", "metric"], sort=False)
        indices: Mapping[Any, Any] = groups.indices  # the stubs only allow single names as keys
        self._places = {tuple(map(str, key)): places for key, places in indices.items()}
        self._captured = {key[:3] for key in self._places if key[2]}

    def find(self, family: str, variant: str, case: str, name: str) -> Found:
        """Returns the number called `name` of a variant at a case.

        Columns of `measurements` take precedence over metrics. For a launch with several kernels, a metric is that of
        the kernel with the longest `duration_us`, and `total_<metric>` is the sum over all kernels. Metrics from
        compiling (`registers_per_thread`, `sass_ffma`, ...) apply to all cases: the value is that of the kernel
        captured at the case, or the largest of the variant's kernels if none was captured. A case that is not timed
        has only metrics.

        Raises:
            WarplogError: if `name` is a text column.
        """
        row = self._measured.get((family, variant, case))
        if row is None and (family, variant, case) in self._captured and name not in MEASUREMENTS:
            return self._metric(family, variant, case, name)
        if row is None:
            return Found(math.nan, "", f"{variant} was not measured at {case}")
        if row["status"] != "ok":
            return Found(math.nan, "", f"{variant} at {case}: {row['status']}: {row['reason']}")
        found = remarks.read(row.get("remarks"))
        if name not in MEASUREMENTS:  # a counter does not depend on how the times were taken
            found = tuple(one for one in found if one["code"] not in remarks.ABOUT_TIMING)
        return replace(self._number(family, variant, case, name, row), remarks=found)

    def _number(self, family: str, variant: str, case: str, name: str, row: Mapping[str, Any]) -> Found:
        if name in MEASUREMENTS:
            column = MEASUREMENTS[name]
            if column.kind not in ("int", "float"):
                raise WarplogError(f"measurements: {name!r} is a text column; choose a numeric one")
            value = float(row.get(name, math.nan))  # tables of earlier versions lack columns
            reason = f"{variant} at {case} has no {name}" if math.isnan(value) else ""
            regime = "sustained" if name.startswith("sustained_") else "rest"
            low, high = _interval(name, row, self._floors.get((family, variant, case, regime), 0.0))
            return Found(value, column.unit, reason, low=low, high=high)
        return self._metric(family, variant, case, name)

    def opcodes(self, family: str, variant: str, prefix: str) -> Found:
        """Counts the instructions with the opcode `prefix` and any modifiers in the SASS of the variant's kernels."""
        mine = {k[3]: p for k, p in self._places.items() if k[:3] == (family, variant, "")}
        if "sass_instructions" not in mine:
            return Found(math.nan, "", f"{variant} has no recorded SASS")
        values = self._rows["value"]
        counts = {name.removeprefix("sass_"): int(values.iloc[p].sum()) for name, p in mine.items()}
        return Found(float(matching(counts, prefix)), "instructions")

    def _metric(self, family: str, variant: str, case: str, name: str) -> Found:
        metric = name.removeprefix(_TOTAL)
        key = (family, variant, case)
        rows = self._of((*key, metric))
        if rows is None:
            rows = self._of((family, variant, "", metric))
            if rows is None:
                return Found(math.nan, "", f"{variant} at {case} has no {metric}: it was not captured")
            ran = rows["kernel"].map(bare_name) == bare_name(self._main_kernel(key)[0])
            return _known(rows, metric, float(rows[ran if ran.any() else slice(None)]["value"].max()))
        if name.startswith(_TOTAL):
            return _known(rows, metric, float(rows["value"].sum(skipna=False)))
        row = rows[rows["launch"] == self._main_kernel(key)[1]]
        rows = row if len(row) else rows
        return _known(rows, metric, float(rows["value"].iloc[0]))

    def _of(self, key: tuple[str, str, str, str]) -> "pd.DataFrame | None":
        places = self._places.get(key)
        return None if places is None else self._rows.iloc[places]

    def _main_kernel(self, key: Key) -> tuple[str, int]:
        rows = self._of((*key, "duration_us"))
        return (longest_kernel(as_rows(rows)) if rows is not None else None) or ("", 0)


_HALF_IQR = 0.6745  # quartiles of a normal distribution, in standard deviations
_TIMES, _RATES = ("median_us",), ("gflops", "gbytes_per_s", "ratio_to_baseline")
# A ratio is of two times, so it has the whole floor; a single time has its share.
_FLOORED = {
    **dict.fromkeys(("median_us", "gflops", "gbytes_per_s", "sustained_us", "sustained_gflops"), 0.5),
    **dict.fromkeys(("ratio_to_baseline", "sustained_ratio_to_baseline"), 1.0),
}


def _interval(name: str, row: Mapping[str, Any], floor: float) -> tuple[float, float]:
    """Returns the interval of a number that depends on a time, relative to it.

    It is that between processes, or the quartiles, and at least as wide as the floor demands.
    """
    low, high = _spread(name, row)
    least = (1 + floor) ** _FLOORED.get(name, 0.0)
    return min(low, 1 / least), max(high, least)


def _spread(name: str, row: Mapping[str, Any]) -> tuple[float, float]:
    """Returns the interval between processes, or the quartiles, relative to the number."""
    median = regimes.value(row, "median_us")
    if name in (*_TIMES, *_RATES) and median > 0:
        low, high = (end / median for end in regimes.interval_us(row))
        return (low, high) if name in _TIMES else (1 / high, 1 / low)
    half = 0.0
    if name == "hot_us":
        half = _HALF_IQR * regimes.value(row, "hot_rel_spread")
    elif name.startswith("sustained_"):
        half = regimes.value(row, "sustained_process_spread") / 2
    return (1 - half, 1 + half) if half > 0 else (1.0, 1.0)


def _known(rows: "pd.DataFrame", metric: str, value: float) -> Found:
    if not math.isnan(value):
        return Found(value, str(rows["unit"].iloc[0]))
    bad = rows[rows["status"] != "ok"]
    why = f"{bad['status'].iloc[0]}: {bad['reason'].iloc[0]}" if len(bad) else "no value"
    return Found(math.nan, str(rows["unit"].iloc[0]), f"{metric}: {why}")
