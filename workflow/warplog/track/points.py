"""Convert table values to MLflow metric points: grouped names, with the problem size as the step."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from warplog.core.columns import Row, number
from warplog.metrics import STALL_REASONS
from warplog.metrics.kernels import kernel_key, longest_kernel

# Column of `measurements` -> (metric name, factor from the table's unit to the metric's), the most important first.
# The unit ends the name, since MLflow has no field for it. The other columns are in the run's tables/measurements.csv.
MEASURES: Mapping[str, tuple[str, float]] = {
    "gflops": ("perf/achieved_tflop_per_s", 1e-3),
    "gbytes_per_s": ("perf/achieved_gb_per_s", 1.0),
    "ratio_to_baseline": ("perf/pct_of_baseline", 100.0),
    "median_us": ("time/median_us", 1.0),
    "q1_us": ("time/q1_us", 1.0),
    "q3_us": ("time/q3_us", 1.0),
    "hot_us": ("time/hot_us", 1.0),
    "sustained_us": ("time/sustained_us", 1.0),
    "sustained_gflops": ("perf/sustained_tflop_per_s", 1e-3),
    "rel_spread": ("time/spread_pct", 100.0),
    "samples": ("time/samples", 1.0),
    "ncu_us": ("time/ncu_us", 1.0),
    "nsys_us": ("time/nsys_us", 1.0),
    "tflops_per_ghz": ("perf/tflop_per_s_per_ghz", 1.0),
    "power_w": ("power/power_w", 1.0),
    "sm_mhz": ("power/sm_mhz", 1.0),
    "sustained_power_w": ("power/sustained_power_w", 1.0),
    "sustained_sm_mhz": ("power/sustained_sm_mhz", 1.0),
    "energy_j": ("power/joule_per_launch", 1.0),
    "gflop_per_j": ("power/gflop_per_joule", 1.0),
    "pj_per_flop": ("power/pj_per_flop", 1.0),
}
# Columns repeated for the headline case at step 0, so that the UI draws them as bars. Comparing runs starts with the
# first by name, which is the rate.
HEADLINES = (
    "gflops",
    "gbytes_per_s",
    "ratio_to_baseline",
    "median_us",
    "hot_us",
    "sustained_us",
    "sustained_gflops",
    "rel_spread",
)
# The state of the GPU at the headline case, which the UI shows in the tab "System metrics" because of the prefix.
STATE: Mapping[str, str] = {
    "power_w": "system/power_w",
    "sm_mhz": "system/sm_mhz",
    "temperature_c": "system/temperature_c",
    "sustained_power_w": "system/sustained_power_w",
    "sustained_sm_mhz": "system/sustained_sm_mhz",
}
# Rates, of which a headline has only the one that shows the family's speed: bytes say little about a GEMM.
_RATES = ("gflops", "sustained_gflops", "gbytes_per_s")
# Metrics of the profiled case, the most important first; the others are in the run's tables/metrics.csv.
PROFILED = (
    "duration_us",
    "achieved_occupancy_pct",
    "theoretical_occupancy_pct",
    "dram_throughput_pct",
    "sm_throughput_pct",
    "dram_bytes",
    "l2_bytes",
    "l1_hit_pct",
    "l2_hit_pct",
    "issue_active_pct",
    "ipc",
    "warp_cycles_per_issue",
    "eligible_warps",
    "shared_conflict_ways",
    "shared_wavefronts_excess",
    "global_load_sectors_per_request",
    "global_store_sectors_per_request",
    "arithmetic_intensity_flop_per_byte",
    "pipe_tensor_pct",
    "pipe_fma_pct",
    "copy_us",
    "kernel_us",
    "wall_us",
    "copy_hidden_pct",
    "longest_engine_pct",
)
# Columns of `traced`: what the addresses of one launch at a small case give, not counters.
TRACED = ("load_sectors_per_request", "store_sectors_per_request", "shared_ways", "wave_reuse")
# Columns of `mechanisms`: what the step was predicted to save, and saved.
SAVINGS = ("predicted_us", "low_us", "high_us", "measured_us")
# The UI of MLflow becomes slow, and its tabs crash, with many metric names (mlflow#24012, mlflow#21841).
MOST_NAMES = 60
_STALLS = {f"stall_{reason}_cycles_per_issue" for reason in STALL_REASONS if reason != "selected"}

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
    sizes = {str(row["case"]): int(number(row, "size")) for row in rows if math.isfinite(number(row, "size"))}
    if len(set(sizes.values())) == len(sizes):
        return {case: ("", size) for case, size in sizes.items()}
    labels = {case: legal(case.replace(str(size), "")).strip("_-. ") for case, size in sizes.items()}
    if len({(labels[case], size) for case, size in sizes.items()}) < len(sizes):
        labels = {case: legal(case) for case in sizes}
    plain = labels.get(headline_case, "")
    return {c: ("" if labels[c] == plain else f"_{labels[c] or 'plain'}", size) for c, size in sizes.items()}


def headline(column: str) -> str:
    """Returns the name of the metric with a column of `measurements` at the headline case."""
    return f"headline/{MEASURES[column][0].partition('/')[2]}"


def headlines(speed: str) -> frozenset[str]:
    """Returns the columns of HEADLINES that a family shows whose speed is the column `speed`."""
    others = set() if speed not in _RATES else {rate for rate in _RATES if not rate.endswith(speed)}
    return frozenset(HEADLINES) - others


def measured(rows: Iterable[Row], steps: Steps, headline_case: str, speed: str) -> Iterable[Point]:
    """Yields the points of rows of `measurements`; skips failed rows and missing values.

    `speed` is the column that shows the family's speed.
    """
    repeated = headlines(speed)
    for row in rows:
        case = str(row["case"])
        if row["status"] != "ok" or case not in steps:
            continue
        suffix, step = steps[case]
        present = {name: value for name in (*MEASURES, *STATE) if math.isfinite(value := number(row, name))}
        values = {name: value * MEASURES[name][1] for name, value in present.items() if name in MEASURES}
        yield from (Point(f"{MEASURES[column][0]}{suffix}", value, step) for column, value in values.items())
        if case == headline_case:
            yield from (Point(headline(c), _rounded(v), 0) for c, v in values.items() if c in repeated)
            yield from (Point(name, _rounded(present[c]), 0) for c, name in STATE.items() if c in present)


def counted(rows: Iterable[Row]) -> Iterable[Point]:
    """Yields the points of rows of `metrics` of the profiled case; each metric must occur once, see `main_rows`."""
    for row in rows:
        name, value = str(row["metric"]), number(row, "value")
        wanted = name in PROFILED or name in _STALLS
        if wanted and row["status"] == "ok" and math.isfinite(value):
            yield Point(f"profile/{name}", _rounded(value), 0)


def traced(row: Row) -> Iterable[Point]:
    """Yields the points of a row of `traced`."""
    yield from _single("traced", TRACED, row)


def argued(row: Row) -> Iterable[Point]:
    """Yields the points of a row of `mechanisms`."""
    yield from _single("mechanism", SAVINGS, row)


def _single(group: str, names: Iterable[str], row: Row) -> Iterable[Point]:
    for name in names:
        if math.isfinite(value := number(row, name)):
            yield Point(f"{group}/{name}", _rounded(value), 0)


def limited(points: Iterable[Point]) -> list[Point]:
    """Returns the points of the MOST_NAMES most important metrics, without metrics that are always zero."""
    unique = {(point.name, point.step): point for point in points}
    names = {point.name for point in unique.values() if point.value}
    kept = set(sorted(names, key=_rank)[:MOST_NAMES])
    return sorted((p for p in unique.values() if p.name in kept), key=lambda p: (p.name, p.step))


def _rank(name: str) -> tuple[int, int, str]:
    """Returns the order of metrics: headline, series of speed, counters, traces and savings, stalls, further cases."""
    group, _, last = name.partition("/")
    series = [metric for metric, _ in MEASURES.values()]
    if group in ("headline", "system"):
        return 0, 0, name
    if name in series:
        return 1, series.index(name), name
    if last in PROFILED:
        return 2, PROFILED.index(last), name
    if group in ("traced", "mechanism"):
        return 2, len(PROFILED), name
    return (3 if group == "profile" else 4), 0, name


def main_rows(rows: Sequence[Row]) -> list[Row]:
    """Selects from the rows of one case those of the whole launch, and those of one kernel per tool.

    A launch can run several kernels; counters of a single kernel keep variants comparable. It is the one with the
    longest duration, else the first.
    """
    kept = [row for row in rows if row["kernel"] == ""]
    for tool in dict.fromkeys(row["tool"] for row in rows):
        counters = [row for row in rows if row["tool"] == tool and row["kernel"] != ""]
        main = longest_kernel(counters)
        kept += (row for row in counters if kernel_key(row) == main)
    return kept


def legal(name: str) -> str:
    """Returns `name` with every character that MLflow rejects in a metric name replaced by "_"."""
    return re.sub(r"[^\w/.\- :]", "_", name)


def _rounded(value: float) -> float:
    """Rounds to six digits: the UI's table prints all digits, and the series hold the exact value."""
    return float(f"{value:.6g}")
