"""Convert table values to MLflow metric points: grouped names, with the problem size as the step."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from warplog import metrics
from warplog.metrics.kernels import bare_name, kernel_key, longest_kernel

# Column of `measurements` -> (metric name, factor from the table's unit to the metric's).
MEASURES: Mapping[str, tuple[str, float]] = {
    "gflops": ("perf/gflops", 1.0),
    "gbytes_per_s": ("perf/gbytes_per_s", 1.0),
    "ratio_to_baseline": ("perf/pct_of_baseline", 100.0),
    "ratio_q1": ("perf/pct_of_baseline_q1", 100.0),
    "ratio_q3": ("perf/pct_of_baseline_q3", 100.0),
    "median_us": ("time/median_us", 1.0),
    "q1_us": ("time/q1_us", 1.0),
    "q3_us": ("time/q3_us", 1.0),
    "min_us": ("time/min_us", 1.0),
    "max_us": ("time/max_us", 1.0),
    "mean_us": ("time/mean_us", 1.0),
    "rel_spread": ("time/rel_spread", 1.0),
    "samples": ("time/samples", 1.0),
    "hot_us": ("time/hot_us", 1.0),
    "hot_rel_spread": ("time/hot_rel_spread", 1.0),
    "empty_us": ("time/empty_us", 1.0),
    "ncu_us": ("time/ncu_us", 1.0),
    "nsys_us": ("time/nsys_us", 1.0),
    "max_error_over_tolerance": ("check/max_error_over_tolerance", 1.0),
    "energy_j": ("energy/joule_per_launch", 1.0),
    "gflop_per_j": ("energy/gflop_per_j", 1.0),
    "pj_per_flop": ("energy/pj_per_flop", 1.0),
    "tflops_per_ghz": ("perf/tflops_per_ghz", 1.0),
    "sustained_power_w": ("device/sustained_power_w", 1.0),
    "sustained_sm_mhz": ("device/sustained_sm_mhz", 1.0),
    "sm_mhz": ("device/sm_mhz", 1.0),
    "power_w": ("device/power_w", 1.0),
    "temperature_c": ("device/temperature_c", 1.0),
}
# Columns repeated for the headline case at step 0, so that the UI draws them as bars.
HEADLINES = ("gflops", "gbytes_per_s", "ratio_to_baseline", "median_us", "hot_us", "rel_spread", "power_w")

Row = Mapping[Any, Any]
Steps = Mapping[str, tuple[str, int]]


@dataclass(frozen=True)
class Point:
    """One value of a metric; the step is the problem size, or 0 for a single value."""

    name: str
    value: float
    step: int


def case_steps(rows: Iterable[Row], headline_case: str) -> dict[str, tuple[str, int]]:
    """Returns for each case the suffix of its metric names and its step, which is the problem size.

    Cases of equal size (uniform and skewed data, for example) would share a point. Therefore the rest of the
    case name becomes a suffix, except in the series that contains the headline case.
    """
    sizes = {str(row["case"]): int(row["size"]) for row in rows if known(row["size"])}
    if len(set(sizes.values())) == len(sizes):
        return {case: ("", size) for case, size in sizes.items()}
    labels = {case: legal(case.replace(str(size), "")).strip("_-. ") for case, size in sizes.items()}
    if len({(labels[case], size) for case, size in sizes.items()}) < len(sizes):
        labels = {case: legal(case) for case in sizes}
    plain = labels.get(headline_case, "")
    return {c: ("" if labels[c] == plain else f"_{labels[c] or 'plain'}", size) for c, size in sizes.items()}


def metric_path(name: str, case: str) -> str:
    """Returns a registry metric's name in MLflow: its group, then the name without that prefix.

    Values that hold for all cases (case "") belong to the group `build`. Metrics that the registry does not list
    individually (`sass_<opcode>`) are grouped by their first word.
    """
    metric = metrics.METRICS.get(name)
    group = name.split("_", 1)[0] if metric is None else metric.group if case else "build"
    return legal(f"{group}/{name.removeprefix(f'{group}_')}")


def measured(rows: Iterable[Row], steps: Steps, headline_case: str) -> Iterable[Point]:
    """Yields the points of rows of `measurements`; skips failed rows and missing values."""
    for row in rows:
        if row["status"] != "ok" or row["case"] not in steps:
            continue
        suffix, step = steps[row["case"]]
        for column, (name, factor) in MEASURES.items():
            value = row.get(column)
            if not known(value):
                continue
            yield Point(f"{name}{suffix}", value * factor, step)
            if row["case"] == headline_case and column in HEADLINES:
                yield Point(f"headline/{name.split('/')[1]}", _rounded(value * factor), 0)


def counted(rows: Iterable[Row], steps: Steps, headline_case: str) -> Iterable[Point]:
    """Yields the points of rows of `metrics`; each metric must occur once per case, see `main_rows`."""
    for row in rows:
        case, name, value = str(row["case"]), str(row["metric"]), row["value"]
        if not known(value) or row["status"] != "ok" or _absent_opcode(name, value):
            continue
        if case in steps:
            suffix, step = steps[case]
            yield Point(f"{metric_path(name, case)}{suffix}", float(value), step)
        elif case == "":
            yield Point(metric_path(name, case), float(value), 0)
        if case == headline_case:
            yield Point(legal(f"headline/{name}"), _rounded(value), 0)


def main_rows(rows: Sequence[Row], kernel: str = "") -> list[Row]:
    """Selects from the rows of one case those of the whole launch, and those of one kernel per tool.

    A launch can run several kernels; counters of a single kernel keep variants comparable. It is the kernel named
    `kernel`, else the one with the longest duration, else the first.
    """
    kept = [row for row in rows if row["kernel"] == ""]
    for tool in dict.fromkeys(row["tool"] for row in rows):
        counters = [row for row in rows if row["tool"] == tool and row["kernel"] != ""]
        names = {str(row["kernel"]) for row in counters}
        matching = (
            {n for n in names if n == kernel}
            or {n for n in names if bare_name(n) == bare_name(kernel)}
            or names
        )
        main = longest_kernel(row for row in counters if row["kernel"] in matching)
        kept += (row for row in counters if kernel_key(row) == main)
    return kept


def known(value: object) -> TypeGuard[float]:
    """Returns whether a cell holds a finite number (not None, NaN or pandas' NA)."""
    return isinstance(value, (int, float)) and math.isfinite(value)


def legal(name: str) -> str:
    """Returns `name` with every character that MLflow rejects in a metric name replaced by "_"."""
    return re.sub(r"[^\w/.\- :]", "_", name)


def _absent_opcode(name: str, value: float) -> bool:
    """Returns whether this is an opcode count of zero; dozens of them would only lengthen the UI's lists."""
    return name.startswith("inst_") and value == 0


def _rounded(value: float) -> float:
    """Rounds to six digits: the UI's table prints all digits, and the series hold the exact value."""
    return float(f"{value:.6g}")
