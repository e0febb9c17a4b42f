"""The numbers behind the pages of a campaign, computed again from its tables alone.

Nothing here is shared with the code that writes the pages: an error in that code must not hide in this one.
"""

import json
import math
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from pyarrow import ArrowException

from warplog.analysis import verdicts
from warplog.core import paths
from warplog.core.columns import Cell, Row, number, text
from warplog.core.errors import WarplogError
from warplog.records import remarks

_TABLES = (
    "measurements",
    "metrics",
    "variants",
    "gpus",
    "published",
    "lines",
    "claims",
    "launches",
    "floors",
)
_NOISE_LONG = 1.02
_SAME_COUNT = 1e-3
_MOST_NAMED, _NAMING = 3, ("claim", "condition", "measure")
# Plain names on the pages: the metric, and whether more of it is faster.
NAMES = {
    "instructions": "instructions_executed", "instructions per cycle": "ipc",
    "achieved occupancy": "achieved_occupancy_pct", "SM activity": "sm_busy_pct", "mean SM clock": "sm_mhz",
    "excess shared wavefronts": "shared_wavefronts_excess", "shared wavefronts": "shared_wavefronts",
    "sectors per global load": "global_load_sectors_per_request",
    "sectors per global store": "global_store_sectors_per_request", "device-memory traffic": "dram_bytes",
    "device-memory writes": "dram_bytes_written", "L2 traffic": "l2_bytes", "L1 traffic": "l1_bytes",
    "waves of blocks": "waves_per_sm",
}  # fmt: skip
CEILINGS = {
    "device memory": "dram_throughput_pct", "L2": "l2_throughput_pct", "L1/TEX": "l1_throughput_pct",
    "the SM's issue slots": "issue_active_pct", "a part of the SM that ncu does not name": "sm_throughput_pct",
    "the FMA pipe": "pipe_fma_pct", "the ALU pipe": "pipe_alu_pct", "the LSU pipe": "pipe_lsu_pct",
    "the FP64 pipe": "pipe_fp64_pct", "the tensor pipe": "pipe_tensor_pct", "the XU pipe": "pipe_xu_pct",
}  # fmt: skip


def read(folder: Path, family: str) -> "Evidence":
    """Reads the tables of a family.

    Raises:
        WarplogError: A table is missing or not readable, or has no such family.
    """
    tables = {}
    for name in _TABLES:
        path = folder / f"{name}.parquet"
        try:
            table = pd.read_parquet(path, page_checksum_verification=True)
        except (OSError, ValueError, TypeError, LookupError, ArrowException) as error:
            raise WarplogError(f"{path}: cannot be read ({error}); run `{paths.command('tables')}`") from None
        tables[name] = table if name == "gpus" else table[table["family"] == family]
    if tables["variants"].empty:
        raise WarplogError(
            f"{folder}/variants: {family}: no such family; delete its page or rebuild the tables"
        )
    return Evidence(tables)


class Evidence:
    """The tables of one family, and the numbers that its page may print."""

    def __init__(self, tables: Mapping[str, pd.DataFrame]) -> None:
        self.tables = tables
        variants = tables["variants"].sort_values(["order", "variant"], kind="stable")
        self.variants: dict[str, Row] = {str(r["variant"]): r for r in _rows(variants)}
        self.case = str(variants["headline_case"].iloc[0])
        key, floors = ["family", "variant", "case", "gpu"], tables["floors"]
        rest = floors.loc[floors["regime"] == "rest", [*key, "deviation", "freedom", "groups"]]
        measured = tables["measurements"].merge(rest, on=key, how="left")
        self.rows: dict[tuple[str, str], dict[Any, Any]] = {
            (str(r["variant"]), str(r["case"])): r for r in _rows(measured)
        }
        self.cases = list(dict.fromkeys(case for _, case in self.rows))

    @cached_property
    def profiled(self) -> str:
        """The case whose counters the page shows."""
        metrics = self.tables["metrics"]
        seen = set(metrics.loc[metrics["tool"] == "ncu", "case"])
        named = [c.strip() for c in str(next(iter(self.variants.values()))["profile_cases"]).split(",")]
        others = [c for c in named if c in seen]
        return self.case if self.case in seen or not others else others[-1]

    @cached_property
    def counters(self) -> dict[str, dict[str, float]]:
        """The metrics of each variant's longest kernel at the profiled case."""
        metrics = self.tables["metrics"]
        rows = metrics[
            (metrics["tool"] == "ncu") & (metrics["case"] == self.profiled) & metrics["value"].notna()
        ]
        found = {}
        for variant, own in rows.groupby("variant"):
            times = own[own["metric"] == "duration_us"]
            if len(times):
                main = max(_rows(times), key=lambda row: number(row, "value"))
                own = own[(own["kernel"] == main["kernel"]) & (own["launch"] == main["launch"])]
            found[str(variant)] = dict(zip(own["metric"], own["value"].astype(float), strict=True))
        return found

    @cached_property
    def longest(self) -> dict[str, str]:
        """The name of each variant's longest kernel at the profiled case."""
        metrics = self.tables["metrics"]
        rows = metrics[(metrics["metric"] == "duration_us") & (metrics["tool"] == "ncu")]
        rows = rows[(rows["case"] == self.profiled) & rows["value"].notna()]
        found = {}
        for variant, own in rows.groupby("variant"):
            found[str(variant)] = str(max(_rows(own), key=lambda row: number(row, "value"))["kernel"])
        return found

    def hot(self, variant: str) -> list[Row]:
        """Returns the rows of the table `lines` of the longest kernel."""
        return [row for row in self.lines.get(variant, []) if row["kernel"] == self.longest.get(variant, "")]

    @cached_property
    def lines(self) -> dict[str, list[Row]]:
        """The rows of the table `lines` at the profiled case, by variant."""
        lines = self.tables["lines"]
        return {} if lines.empty else _by_variant(lines[lines["case"] == self.profiled])

    @cached_property
    def published(self) -> dict[str, list[Row]]:
        """The published numbers, by variant."""
        return _by_variant(self.tables["published"].fillna({"published_case": ""}))

    def opcodes(self, variant: str) -> set[str]:
        """Returns the opcodes in the machine code of kernels of that name, without those never executed, if counted."""
        counted = self.counters.get(variant, {})
        if mine := self._compiled.get(variant):
            codes = {str(row["metric"]).removeprefix("sass_") for row in mine}
            return {code for code in codes if counted.get(f"inst_{code.split('.')[0].lower()}") != 0}
        return {
            name.removeprefix("inst_").upper()
            for name, n in counted.items()
            if name.startswith("inst_") and n > 0
        }

    def machine_code(self, variant: str) -> list[frozenset[tuple[str, float]]]:
        """Returns the numbers of instructions by opcode of the compiled kernels with the name of the longest one."""
        found: dict[str, set[tuple[str, float]]] = {}
        for row in self._compiled.get(variant, []):
            found.setdefault(str(row["kernel"]), set()).add((str(row["metric"]), number(row, "value")))
        return [frozenset(found[kernel]) for kernel in sorted(found)]

    @cached_property
    def _compiled(self) -> dict[str, list[Row]]:
        """The rows on opcodes in the compiled kernels with the name of the longest one, by variant."""
        metrics = self.tables["metrics"]
        rows = _by_variant(metrics[metrics["metric"].str.startswith("sass_") & (metrics["value"] > 0)])
        names = {variant: _function(self.longest.get(variant, "")) for variant in rows}
        return {
            v: [row for row in own if _function(str(row["kernel"])) == names[v]] for v, own in rows.items()
        }

    @cached_property
    def whole_launch(self) -> dict[tuple[str, str], float]:
        """The metrics that nsys gives for whole launches at the headline case, by variant and metric."""
        metrics = self.tables["metrics"]
        rows = metrics[(metrics["tool"] == "nsys") & (metrics["case"] == self.case)]
        return {(str(r["variant"]), str(r["metric"])): number(r, "value") for r in _rows(rows)}

    def measured(self, variant: str, column: str, case: str = "") -> float:
        """Returns a column of `measurements`; NaN if it is missing."""
        return number(self.rows.get((variant, case or self.case), {}), column)

    def speed(self, variant: str, unit: str, case: str = "") -> float:
        """Returns a speed in the printed unit."""
        column = {"TFLOP/s": "gflops", "GFLOP/s": "gflops", "GB/s": "gbytes_per_s", "µs": "median_us"}[unit]
        return self.measured(variant, column, case) * (1e-3 if unit == "TFLOP/s" else 1.0)

    def ratio(self, slow: str, fast: str, case: str = "") -> float:
        """Returns the time of `slow` over that of `fast`."""
        return self.measured(slow, "median_us", case) / self.measured(fast, "median_us", case)

    def interval(self, variant: str, case: str = "") -> tuple[float, float]:
        """Returns the range between processes if there are several, otherwise the quartiles."""
        ends = (
            ("process_min_us", "process_max_us")
            if self.measured(variant, "processes", case) > 1
            else ("q1_us", "q3_us")
        )
        low, high = (self.measured(variant, end, case) for end in ends)
        return low, high

    def ratio_ends(self, slow: str, fast: str, case: str = "") -> tuple[float, float]:
        """Returns the least and the largest `ratio` within the intervals of two variants."""
        (low, high), (least, most) = self.interval(slow, case), self.interval(fast, case)
        return low / most, high / least

    def tied(self, a: str, b: str, case: str = "") -> bool:
        """Returns whether neither of two variants is faster than the other."""
        return verdicts.tied(*(self.rows.get((name, case or self.case), {}) for name in (a, b)))

    def kernels_tied(self, a: str, b: str) -> bool:
        """Returns whether the kernels of two variants are tied at the headline case, under each of their names."""
        pairs = [(one, other) for one in self.alike.get(a, [a]) for other in self.alike.get(b, [b])]
        return all(self.tied(*pair) for pair in pairs)

    def faster(self, a: str, b: str, case: str = "") -> bool:
        """Returns whether a variant is faster than another one, and not tied with it."""
        return self.ratio(b, a, case) > 1 and not self.tied(a, b, case)

    def long_us(self, variant: str) -> float:
        """Returns the time back to back."""
        return self.measured(variant, "sustained_us")

    def timed(self) -> list[str]:
        """Returns the variants besides the baseline with a time at the headline case."""
        return [
            name
            for name, row in self.variants.items()
            if not row["is_baseline"] and self.measured(name, "median_us") > 0
        ]

    def baseline(self) -> str:
        """Returns the name of the baseline; "" without one."""
        return next((name for name, row in self.variants.items() if row["is_baseline"]), "")

    def parent(self, variant: str) -> str:
        """Returns the parent of a variant; "" without one."""
        return str(self.variants.get(variant, {}).get("parent") or "")

    def counter(self, variant: str, metric: str) -> float:
        """Returns a metric of the longest kernel, the share of active SMs, or the SM clock during timing."""
        if metric == "sm_mhz":
            return self.measured(variant, "sm_mhz", self.profiled)
        values = self.counters.get(variant, {})
        if metric == "sm_busy_pct":
            whole = values.get("ipc", math.nan) * self.peak("sms") * values.get("gpu_cycles", math.nan)
            return 100 * values.get("instructions_executed", math.nan) / whole if whole > 0 else math.nan
        return values.get(metric, math.nan)

    def spills(self, variant: str) -> tuple[float, float]:
        """Returns the bytes of spill stores and loads of the launched kernel, which add up to its `spill_bytes`."""
        total = self.variants.get(variant, {}).get("spill_bytes")
        for stores, loads in self._spills.get(variant, ()):
            if stores + loads == total:
                return stores, loads
        return math.nan, math.nan

    @cached_property
    def _spills(self) -> dict[str, list[tuple[float, float]]]:
        """The bytes of spill stores and loads of the kernels of each variant's build."""
        metrics = self.tables["metrics"]
        rows = metrics[metrics["metric"].str.startswith("spill_")]
        wide = rows.pivot_table(
            index=["variant", "kernel"], columns="metric", values="value", aggfunc="first"
        )
        wide = wide.reindex(columns=["spill_store_bytes", "spill_load_bytes"])
        found: dict[str, list[tuple[float, float]]] = {}
        for (variant, _), stores, loads in wide.itertuples(name=None):
            found.setdefault(str(variant), []).append((float(stores), float(loads)))
        return found

    def factor(self, parent: str, variant: str, metric: str) -> float:
        """Returns how many times faster the change of a metric makes the variant."""
        before, after = self.counter(parent, metric), self.counter(variant, metric)
        costs = metric == "instructions_executed"
        return before / after if costs else after / before

    def remainder(self, parent: str, variant: str) -> float:
        """Returns the part of the ratio of times that no factor explains."""
        rest = self.ratio(parent, variant, self.profiled)
        for metric in (
            "instructions_executed",
            "ipc",
            "sm_busy_pct",
            "sm_mhz",
        ):
            factor = self.factor(parent, variant, metric)
            rest /= 1.0 if math.isnan(factor) else factor
        return rest

    def spent_us(self, variant: str, state: str) -> float:
        """Returns the time of a variant's kernel in a warp state, in microseconds."""
        states = ("selected", "not_selected") if state.startswith("issuing") else (state,)
        in_state = sum(self.counter(variant, f"stall_{one}_cycles_per_issue") for one in states)
        return self.counter(variant, "duration_us") * in_state / self._states_total.get(variant, 0.0)

    def others_us(self, variant: str) -> float:
        """Returns the time of the other kernels of a launch under ncu, in microseconds."""
        return self.measured(variant, "ncu_us", self.profiled) - self.counter(variant, "duration_us")

    def copies_us(self, variant: str) -> float:
        """Returns the time of the copies of a launch, which nsys names by where they lead from and to."""
        metrics = self.tables["metrics"]
        mine = metrics[(metrics["variant"] == variant) & (metrics["case"] == self.profiled)]
        mine = mine[
            (mine["metric"] == "nsys_kernel_duration_us") & mine["kernel"].str.fullmatch(r"\w+-to-\w+")
        ]
        return float(mine["value"].sum())

    def is_same_kernel(self, one: str, other: str) -> bool:
        """Returns whether two variants of different sources launch the same kernel at the headline case."""
        if self.profiled != self.case or any(name not in self.longest for name in (one, other)):
            return False
        headers = [
            [str(self.variants[name].get(key) or "") for name in (one, other)]
            for key in ("expected", "credit")
        ]
        if any(mine == its and mine for mine, its in headers):  # of one source, with other parameters
            return False
        if _plain(self.longest[one]) != _plain(self.longest[other]) and not self.tied(one, other):
            return False
        shape = ("registers_per_thread", "grid_blocks", "block_threads", "shared_bytes_per_block")
        if any(self.counter(one, metric) != self.counter(other, metric) for metric in shape):
            return False
        counts = [self.counter(name, "instructions_executed") for name in (one, other)]
        codes = self.machine_code(one), self.machine_code(other)
        return abs(counts[0] / counts[1] - 1) <= _SAME_COUNT and any(code in codes[1] for code in codes[0])

    @cached_property
    def alike(self) -> dict[str, list[str]]:
        """The variants that launch the same kernel as a variant, in ladder order, for those with any."""
        kinds: list[list[str]] = []
        for name in self.variants:
            mine = next((kind for kind in kinds if any(self.is_same_kernel(one, name) for one in kind)), None)
            if mine is None:
                kinds.append([name])
            else:
                mine.append(name)
        return {name: kind for kind in kinds for name in kind if len(kind) > 1}

    def best(self) -> str:
        """Returns the fastest variant; of those with its kernel, the one that is first or tied in most cases."""
        own = self.timed()
        first = min(own, key=lambda name: self.measured(name, "median_us"))

        def wins(name: str) -> int:
            count = 0
            for case in self.cases:
                times = {one: self.measured(one, "median_us", case) for one in own}
                times = {one: time for one, time in times.items() if time > 0}
                quickest = min(times, key=times.__getitem__, default="")
                count += name in times and (name == quickest or self.tied(name, quickest, case))
            return count

        return max(self.alike.get(first, [first]), key=wins)

    def blocks_per_sm(self, variant: str) -> float:
        """Returns the number of blocks that the scarcest resource of an SM allows."""
        resources = ("warps", "registers", "shared_memory", "blocks")
        return min(self.counter(variant, f"occupancy_limit_{one}_blocks") for one in resources)

    def tile_end(self, variant: str) -> float:
        """Returns the median gap at a tile end in the timeline of a variant, in microseconds; NaN without one."""
        launches = _rows(self.tables["launches"])
        mine = (row for row in launches if (row["variant"], row["case"]) == (variant, self.profiled))
        return next((number(row, "bubble_us") for row in mine), math.nan)

    @cached_property
    def _states_total(self) -> dict[str, float]:
        """The warp cycles per issued instruction, as the sum of all warp states, by variant."""
        is_state = re.compile(r"stall_\w+_cycles_per_issue").fullmatch
        return {v: sum(n for name, n in own.items() if is_state(name)) for v, own in self.counters.items()}

    def verdicts(self, variant: str) -> list[str]:
        """Returns the verdicts on the claims beside a variant."""
        return [str(row["verdict"]) for row in self._claims.get(variant, [])]

    def claimed_cases(self, variant: str) -> set[str]:
        """Returns the cases of the numbers behind the claims beside a variant, by their evidence or the claim."""
        found: set[str] = set()
        for row in self._claims.get(variant, []):
            terms = re.findall(r"(\w+)\(([^()]*)\) = ", str(row.get("evidence") or ""))
            named = [words.split(", ")[-1] for function, words in terms if function != "sass"]
            found |= {name if name in self.cases else str(row["case"]) for name in named or [""]}
        return found

    @cached_property
    def _claims(self) -> dict[str, list[Row]]:
        """The claims beside each variant: the last one, of at most three, that a claim names."""
        found: dict[str, list[Row]] = {}
        for row in _rows(self.tables["claims"]):
            words = set(re.findall(r"\w+", " ".join(str(row.get(c) or "") for c in _NAMING)))
            named = [name for name in self.variants if name in words]
            own = [name for name in named if name != self.baseline()] or named
            if 0 < len(own) <= _MOST_NAMED:
                found.setdefault(own[-1], []).append(row)
        return found

    def own_limits(self, variant: str, case: str) -> dict[str, str]:
        """Returns the limits that the variant sets itself if nothing else keeps it from a case: {"M": "8192"}."""
        limits = remarks.own_limits(self.rows.get((variant, case), {}).get("own_limits"))
        return {name: str(most) for name, most in limits.items()}

    def peak(self, column: str) -> float:
        """Returns a column of the table `gpus`."""
        gpus = self.tables["gpus"]
        return number(_rows(gpus)[0], column) if len(gpus) else math.nan

    def parameters(self, variant: str) -> dict[str, int]:
        """Returns the compile-time parameters of a variant."""
        return dict(json.loads(text(self.variants[variant], "parameters") or "{}"))

    def is_long(self, variant: str) -> bool:
        """Returns whether launches back to back are slower than single ones by more than 2 %."""
        return self.long_us(variant) > _NOISE_LONG * self.measured(variant, "median_us")


def metric_of(name: str) -> str:
    """Returns the metric that a plain name stands for: "LDG instructions" is `inst_ldg`."""
    name = name.removesuffix(", %").removesuffix(", MHz")
    if name in NAMES:
        return NAMES[name]
    return f"inst_{name.removesuffix(' instructions').lower()}" if name.endswith(" instructions") else name


def _function(kernel: str) -> str:
    """Returns the name of a function without result, namespaces, template arguments and parameters."""
    plain = re.sub(r"\(anonymous namespace\)::|<unnamed>::|^void ", "", kernel)
    return re.split(r"[<(]", plain, maxsplit=1)[0].rsplit("::", 1)[-1]


def _plain(kernel: str) -> str:
    """Returns the name of a kernel without result and namespaces, with template arguments and parameters."""
    return re.sub(r"^void |<unnamed>::|\(anonymous namespace\)::|\w+::", "", kernel)


def _rows(table: pd.DataFrame) -> list[dict[str, Cell]]:
    return [{str(name): cell for name, cell in row.items()} for row in table.to_dict("records")]


def _by_variant(table: pd.DataFrame) -> dict[str, list[Row]]:
    """Returns the rows of a table by the variant they name."""
    found: dict[str, list[Row]] = {}
    for row in _rows(table):
        found.setdefault(str(row["variant"]), []).append(row)
    return found
