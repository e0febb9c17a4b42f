"""Looks up the numbers of a campaign by name: columns of `measurements`, and metrics of captured or compiled kernels.

Claims and the probes of the oracle are judged by these numbers. A missing number has a reason instead of a value.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from warplog.analysis.verdicts import ASSUMED, EXACT, Noise, between, noise_of
from warplog.catalog.claims import KERNELS_PER_LAUNCH
from warplog.core.columns import MEASUREMENTS, Row, number
from warplog.core.errors import WarplogError
from warplog.metrics.kernels import bare_name, longest_kernel
from warplog.parsers.sass import matching
from warplog.records import remarks
from warplog.records.remarks import NotReported, Remark, TimeRemark
from warplog.tables import regimes
from warplog.tables.files import as_rows

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[str, str, str]
_TOTAL, _SASS, _KEY = "total_", "sass_", ("family", "variant", "case", "regime")
_OF_TIMES = ("median_us", "gflops", "gbytes_per_s", "ratio_to_baseline")  # at rest


@dataclass(frozen=True)
class Number:
    """A number in its unit; if it is NaN, `code` and `reason` give the cause in a word and in words ("" otherwise).

    `remarks` are those on the variant's row of `measurements` at the case, whose status is ok. `noise` is what the
    same code shows of a number that depends on a time; it is relative to `value`, and EXACT for other numbers.
    """

    value: float
    unit: str
    reason: str = ""
    code: str = ""
    remarks: Sequence[Remark] = ()
    noise: Noise = EXACT


class Quantities:
    """The numbers in the tables `measurements` and `metrics` of one GPU.

    `floors` is the table of that name; a time without a row in it has an assumed spread.
    """

    def __init__(
        self,
        measurements: "pd.DataFrame",
        metrics: "pd.DataFrame",
        floors: "pd.DataFrame | None" = None,
    ) -> None:
        self._noise: dict[tuple[str, ...], Noise] = {
            tuple(str(row[name]) for name in _KEY): noise_of(row)
            for row in (as_rows(floors) if floors is not None else ())
        }
        self._measured: dict[Key, Row] = {
            (str(row["family"]), str(row["variant"]), str(row["case"])): row for row in as_rows(measurements)
        }
        # nsys numbers the kernels of a launch differently from ncu, so only its metrics of whole launches are used.
        by_nsys = metrics["metric"] == "nsys_kernel_duration_us"
        self._kernels: Mapping[Any, Any] = (
            metrics[by_nsys].groupby(["family", "variant", "case"]).size().to_dict()
        )
        metrics = metrics[~by_nsys]
        self._rows = metrics
        groups = metrics.groupby(["family", "variant", "case", "metric"], sort=False)
        indices: Mapping[Any, Any] = groups.indices  # the stubs only allow single names as keys
        self._places = {tuple(map(str, key)): places for key, places in indices.items()}
        self._captured = {key[:3] for key in self._places if key[2]}

    def find(self, family: str, variant: str, case: str, name: str) -> Number:
        """Returns the number called `name` of a variant at a case.

        Columns of `measurements` take precedence over metrics. For a launch with several kernels, a metric is that of
        the kernel with the longest `duration_us`, and `total_<metric>` is the sum over all kernels. Metrics from
        compiling (`registers_per_thread`, `sass_ffma`, ...) apply to all cases: the value is that of the kernel
        captured at the case, or the largest of the variant's kernels if none was captured, or `case` is "". A case that
        is not timed has only metrics. `kernels_per_launch` is the number of kernels that Nsight Systems saw.

        Raises:
            WarplogError: if `name` is a text column.
        """
        row = self._measured.get((family, variant, case))
        captured = not case or (family, variant, case) in self._captured
        if row is None and captured and name not in MEASUREMENTS:
            return self._metric(family, variant, case, name)
        if row is None:
            return Number(math.nan, "", f"{variant} was not measured at {case}", "not_measured")
        if row["status"] != "ok":
            why = f"{variant} at {case}: {row['status']}: {row['reason']}"
            return Number(math.nan, "", why, str(row["status"]))
        notes = remarks.read(row.get("remarks"))
        if name not in MEASUREMENTS:  # a counter does not depend on how the times were taken
            notes = tuple(remark for remark in notes if not isinstance(remark, TimeRemark | NotReported))
        return replace(self._number(family, variant, case, name, row), remarks=notes)

    def _number(self, family: str, variant: str, case: str, name: str, row: Row) -> Number:
        if name == KERNELS_PER_LAUNCH:
            count = self._kernels.get((family, variant, case))
            why = "" if count else f"{variant} at {case}: its kernels were not captured"
            return Number(float(count or math.nan), "kernels", why, "" if count else "not_captured")
        if name in MEASUREMENTS:
            column = MEASUREMENTS[name]
            if column.kind not in ("int", "float"):
                raise WarplogError(f"measurements: {name!r} is a text column; choose a numeric one")
            value = number(row, name)
            noise = self._noise_of(name, row)
            if math.isnan(value):
                code = "no_time" if column.unit == "us" else "no_value"
                return Number(value, column.unit, f"{variant} at {case} has no {name}", code, noise=noise)
            return Number(value, column.unit, noise=noise)
        return self._metric(family, variant, case, name)

    def _noise_of(self, name: str, row: Row) -> Noise:
        """Returns what the same code shows of a column; of a ratio to the baseline, it is that of both times."""
        regime = regimes.SUSTAINED if name.startswith("sustained_") else "rest"
        if name == "hot_us":  # launches of one process
            return Noise(number(row, "hot_rel_spread"))
        if name not in _OF_TIMES and regime == "rest":
            return EXACT
        variants = [row["variant"], *([row["baseline"]] if name.endswith("ratio_to_baseline") else [])]
        noises = [
            self._noise.get((str(row["family"]), str(variant), str(row["case"]), regime), ASSUMED)
            for variant in variants
        ]
        return between(*noises) if len(noises) > 1 else noises[0]

    def opcodes(self, family: str, variant: str, prefix: str) -> Number:
        """Counts the instructions with the opcode `prefix` and any modifiers in the SASS of the variant's kernels.

        `RED*` also counts other opcodes that begin with RED, such as REDG.
        """
        counts = self._opcodes.get((family, variant), {})
        if "instructions" not in counts:
            return Number(math.nan, "", f"{variant} has no recorded SASS", "not_compiled")
        if prefix.endswith("*"):
            count = sum(count for opcode, count in counts.items() if opcode.startswith(prefix[:-1]))
        else:
            count = matching(counts, prefix)
        return Number(float(count), "instructions")

    @cached_property
    def _opcodes(self) -> dict[tuple[str, str], dict[str, int]]:
        """The number of instructions by family and variant, and by opcode, in the SASS of its kernels."""
        metrics, counts = self._rows, defaultdict[tuple[str, str], Counter[str]](Counter)
        compiled = metrics[
            (metrics["case"] == "") & metrics["metric"].str.startswith(_SASS) & metrics["value"].notna()
        ]
        for row in as_rows(compiled[["family", "variant", "metric", "value"]]):
            opcode = str(row["metric"]).removeprefix(_SASS)
            counts[str(row["family"]), str(row["variant"])][opcode] += int(number(row, "value"))
        return dict(counts)

    def _metric(self, family: str, variant: str, case: str, name: str) -> Number:
        metric = name.removeprefix(_TOTAL)
        key = (family, variant, case)
        rows = self._of((*key, metric))
        if rows is None or not (case or name.startswith(_TOTAL)):
            rows = self._of((family, variant, "", metric))
            if rows is None:
                is_older = (
                    self._of((*key, "duration_us")) is not None
                )  # a campaign before ncu was asked for the metric
                why = "this campaign did not record it" if is_older else "it was not captured"
                code = "not_recorded" if is_older else "not_captured" if case else "not_compiled"
                return Number(math.nan, "", f"{variant} at {case} has no {metric}: {why}", code)
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


def _known(rows: "pd.DataFrame", metric: str, value: float) -> Number:
    if not math.isnan(value):
        return Number(value, str(rows["unit"].iloc[0]))
    bad = rows[rows["status"] != "ok"]
    why = f"{bad['status'].iloc[0]}: {bad['reason'].iloc[0]}" if len(bad) else "no value"
    code = str(bad["status"].iloc[0]) if len(bad) else "no_value"
    return Number(math.nan, str(rows["unit"].iloc[0]), f"{metric}: {why}", code)
