"""The tables of one family as figures, pages and MLflow use them: one row per variant, in ladder order, with gaps."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from warplog.catalog.contract import status_words
from warplog.core.columns import Row, number, text
from warplog.core.errors import WarplogError
from warplog.core.text import one_line
from warplog.metrics.banks import WAVEFRONTS, no_more_than_l1
from warplog.metrics.kernels import kernel_key, longest_kernel
from warplog.tables import conclusions
from warplog.tables.files import NEEDED, ORIGIN_COLUMNS, as_rows, read_table

TABLES = (
    *("measurements", "metrics", "timeline", "variants", "gpus"),
    *("power_trace", "lines", "launches", "tracks"),
)
# Made by jobs of their own, after the others, or missing in campaigns that an earlier release recorded.
TRACED = ("accesses", "traced_kernels")
OPTIONAL = (
    *("claims", "floors", "instructions", *(kind.TABLE for kind in conclusions.TABLES)),
    *(*TRACED, "access_lanes", "access_owners", "access_tiles"),
)

_OF_GPU = ("gpus", "ceilings")
_EXCESS = "shared_wavefronts_excess"
_MOSTLY = 0.9  # of the conflicts that addresses tell: if L1 had fewer, it is unknown of which lines
_USABLE = ("met", "within_noise")  # words of a ceiling


@dataclass(frozen=True)
class Quantity:
    """The quantity that shows a family's speed: a column of `measurements`, its unit, and the GPU's peak."""

    column: str
    label: str
    unit: str
    peak: float = np.nan
    peak_label: str = ""


TIME = Quantity("median_us", "median time", "µs")


@dataclass(frozen=True)
class FigureTables:
    """The tables of one family on one GPU, with the columns of results/tables.

    `places` is the table `ladder`; `gpus` and `ceilings` are those of the campaign.
    """

    measurements: pd.DataFrame
    metrics: pd.DataFrame
    timeline: pd.DataFrame
    variants: pd.DataFrame
    gpus: pd.DataFrame
    power_trace: pd.DataFrame = field(default_factory=pd.DataFrame)
    claims: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["claims"]))
    lines: pd.DataFrame = field(default_factory=pd.DataFrame)
    floors: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["floors"]))
    launches: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["launches"]))
    tracks: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["tracks"]))
    instructions: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["instructions"]))
    accesses: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["accesses"]))
    traced_kernels: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=NEEDED["traced_kernels"])
    )
    traced: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["traced"]))
    access_lines: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["access_lines"]))
    sass_steps: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["sass_steps"]))
    verdicts: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["verdicts"]))
    places: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["ladder"]))
    steps: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["steps"]))
    changes: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["changes"]))
    answers: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["answers"]))
    bounds: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["bounds"]))
    chips: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["chips"]))
    duels: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["duels"]))
    ceilings: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["ceilings"]))
    mechanisms: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["mechanisms"]))
    unit_times: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["unit_times"]))
    forecasts: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["forecasts"]))
    access_lanes: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["access_lanes"]))
    access_owners: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["access_owners"]))
    access_tiles: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=NEEDED["access_tiles"]))

    @property
    def family(self) -> str:
        """The name of the family."""
        return str(self.variants["family"].iloc[0])

    @property
    def case(self) -> str:
        """The headline case, which figures with one number per variant show."""
        return str(self.variants["headline_case"].iloc[0])

    @cached_property  # the runs and steps of a family ask for it again and again, and it reads all metrics
    def profiled_case(self) -> str:
        """The case whose counters are shown: the headline case if it has any, otherwise the last case that does."""
        profiled = set(self.metrics.loc[self.metrics["tool"] == "ncu", "case"].unique())
        others = [c for c in self.profile_cases if c in profiled]
        return self.case if self.case in profiled or not others else others[-1]

    @cached_property
    def shown_traces(self) -> pd.DataFrame:
        """The row of `traced` of each variant that is shown, if it was traced at several cases."""
        return self.traced.drop_duplicates("variant")

    @property
    def traced_cases(self) -> list[str]:
        """The cases of the traced launches that are shown, that of most variants first."""
        return ranked(self.shown_traces.loc[self.shown_traces["status"] == "ok", "case"])

    @property
    def traced_case(self) -> str:
        """The case at which most variants were traced; "" if none was."""
        return next(iter(self.traced_cases), "")

    @property
    def profile_cases(self) -> list[str]:
        """The cases to be profiled, in the order of the family."""
        return [c.strip() for c in str(self.variants["profile_cases"].iloc[0]).split(",")]

    def peak(self, column: str) -> float:
        """Returns a column of the table `gpus`; NaN if it is unknown."""
        rows = self.gpus
        if column not in rows or rows.empty:
            return np.nan
        return float(pd.to_numeric(rows[column], errors="coerce").iloc[0])

    def ceiling(self, name: str) -> tuple[float, str]:
        """Returns what the campaign measured as a ceiling of the GPU, and the family whose kernels show it.

        It is NaN if it was not measured, or lies outside of what is expected of any GPU.
        """
        usable = (self.ceilings["ceiling"] == name) & self.ceilings["word"].isin(_USABLE)
        row = next(iter(as_rows(self.ceilings[usable])), {})
        return number(row, "value"), text(row, "family")

    def ladder(self, case: str) -> pd.DataFrame:
        """Returns one row per variant in ladder order, with columns of `variants` and of `measurements` at `case`.

        A variant that was not measured at the case has the status "missing". `gap` is "", or the reason why there
        is no number.
        """
        if case not in self._ladders:
            self._ladders[case] = self._ladder(case)
        return self._ladders[case].copy(deep=False)

    @cached_property
    def _ladders(self) -> dict[str, pd.DataFrame]:
        """The ladders at the cases that were asked for."""
        return {}

    def _ladder(self, case: str) -> pd.DataFrame:
        variants = self.variants.sort_values(["order", "variant"], kind="stable")
        variants = variants[["family", "variant", "order", "parent", "is_baseline"]]
        rows = self.measurements[self.measurements["case"] == case].drop(columns=["family"])
        joined = variants.merge(rows.drop_duplicates("variant", keep="last"), on="variant", how="left")
        joined["case"] = case
        joined["reason"] = joined["reason"].where(joined["status"].notna(), "not measured").fillna("")
        joined["status"] = joined["status"].fillna("missing")
        for column in ("remarks", "own_limits"):
            joined[column] = joined[column].fillna("")
        joined["gap"] = list(map(gap_text, joined["status"], joined["reason"], joined["own_limits"]))
        for column in ORIGIN_COLUMNS:
            joined[column] = joined[column].fillna(self._shared(column))
        return joined.reset_index(drop=True)

    def _shared(self, column: str) -> str:
        values = self.measurements[column].dropna().unique()
        return str(values[0]) if len(values) == 1 else ""

    def counters(self, names: Sequence[str]) -> pd.DataFrame:
        """Returns one row per variant at the profiled case, with the metrics `names` as columns (NaN if missing).

        If the variant launches several kernels, the row shows the kernel with the longest `duration_us`, named in
        the column `kernel`. `gap` is that of the ladder, or the reason why there are no counters. Wavefronts of shared
        memory and their conflicts are no more than L1 had, although the addresses may tell of more.
        """
        kept = ["family", "variant", "order", "is_baseline", "case", "status", "gap", "own_limits"]
        kept += ORIGIN_COLUMNS
        reasons, kernels, metrics = self._captured
        wide = metrics.reindex(columns=list(names)).astype(float)
        wide.insert(0, "kernel", kernels)
        table = self.ladder(self.profiled_case)[kept].join(wide, on="variant")
        table["kernel"] = table["kernel"].fillna("")
        bare = (table["gap"] == "") & table[list(names)].isna().all(axis=1)
        table.loc[bare, "gap"] = [reasons.get(variant, "n/a") for variant in table.loc[bare, "variant"]]
        return table

    @cached_property
    def _captured(self) -> "tuple[dict[str, str], pd.Series[str], pd.DataFrame]":
        """By variant why ncu failed at the profiled case, its longest kernel, and the metrics of that as columns."""
        rows = self.metrics[(self.metrics["case"] == self.profiled_case) & (self.metrics["tool"] == "ncu")]
        bad = rows[rows["status"] != "ok"].drop_duplicates("variant")
        failed = zip(bad["variant"], bad["status"], strict=True)
        reasons = {variant: f"n/a ({words(status)})" for variant, status in failed}
        picked = [_of_main_kernel(group) for _, group in rows.groupby("variant", sort=False)]
        taken = pd.concat(picked) if picked else rows
        wide = taken.pivot_table(index="variant", columns="metric", values="value", aggfunc="first")
        return reasons, taken.groupby("variant")["kernel"].first(), _with_l1(wide)

    @cached_property
    def kernel_lines(self) -> dict[str, list[Row]]:
        """The hot lines of each variant's longest kernel, of one launch of it: each has shares of its own.

        What they lose to bank conflicts is unknown if it is more than the kernel does (see `counters`).
        """
        counters, lines = as_rows(self.counters([_EXCESS])), self.lines
        kernels = {str(row["variant"]): str(row["kernel"]) for row in counters}
        lost = {str(row["variant"]): number(row, _EXCESS) for row in counters}
        launches: dict[str, dict[int, list[Row]]] = {}
        for row in as_rows(lines if lines.empty else lines[lines["case"] == self.profiled_case]):
            variant = str(row["variant"])
            if row["kernel"] == (kernels.get(variant) or row["kernel"]):
                launches.setdefault(variant, {}).setdefault(int(number(row, "launch")), []).append(row)
        return {
            variant: _within(
                lost.get(variant, np.nan),
                max(
                    launched.values(),
                    key=lambda own: sum(max(0.0, number(row, "instructions")) for row in own),
                ),
            )
            for variant, launched in launches.items()
        }

    def compulsory_intensity(self) -> float:
        """Returns the algorithm's FLOPs per compulsory byte at the profiled case; NaN if it has no FLOPs or bytes."""
        rows = self.measurements[self.measurements["case"] == self.profiled_case]
        ratio = _typical(rows, "gflops") / _typical(rows, "gbytes_per_s")
        if np.isnan(ratio) and {"flops", "bytes"} <= set(self.variants) and self.profiled_case == self.case:
            ratio = _typical(self.variants, "flops") / _typical(self.variants, "bytes")
        return ratio if 0 < ratio < np.inf else np.nan

    def quantity(self) -> Quantity:
        """Chooses the quantity for the family's speed: GB/s below the roofline's ridge point, otherwise GFLOP/s.

        A family without FLOPs and bytes, or limited by latency, is shown by its time. The ridge point is peak FLOP/s
        over peak bytes/s from the table `gpus`, of device memory or of the bus (column `limit` of `variants`); it is
        compared with the arithmetic intensity of the algorithm.
        """
        return self._quantity

    @cached_property  # the runs of a family ask for it again and again
    def _quantity(self) -> Quantity:
        rows = self.measurements[self.measurements["status"] == "ok"]
        rows = rows[rows["case"] == self.case] if (rows["case"] == self.case).any() else rows
        flops, moved = (_typical(rows, c) for c in ("gflops", "gbytes_per_s"))
        limit = str(self.variants["limit"].iloc[0]) if "limit" in self.variants else "dram"
        peak_flops, peak_bytes = self.peak("fp32_tflops_peak") * 1e3, self.peak(f"{limit}_gbytes_per_s_peak")
        if limit == "latency":
            return TIME
        below_ridge = flops > 0 and moved > 0 and flops / moved < peak_flops / peak_bytes
        if moved > 0 and (below_ridge or not flops > 0):
            # Copies in both directions exceed the peak of one; then it is no bound, and is not drawn.
            peak = peak_bytes if peak_bytes > rows["gbytes_per_s"].max() else np.nan
            label = {"pcie": "PCIe peak"}.get(limit, "DRAM peak")
            return Quantity("gbytes_per_s", "throughput", "GB/s", peak, label)
        if flops > 0:
            tops = self.compute_peaks(float(rows["gflops"].max()))
            label, peak = tops[-1] if tops and tops[-1][1] > rows["gflops"].max() else ("", np.nan)
            return Quantity("gflops", "throughput", "GFLOP/s", peak, label)
        return TIME

    def compute_peaks(self, best_gflops: float) -> list[tuple[str, float]]:
        """Returns the compute peaks to draw, as (label, GFLOP/s), lowest first.

        FP32 is always drawn; bfloat16 only if tensor cores were used or the fastest variant (`best_gflops`) exceeds
        the FP32 peak, which is impossible without them; FP8 only if it exceeds the bfloat16 peak.
        """
        tensor = self.metrics.loc[self.metrics["metric"] == "tensor_flops", "value"].max() > 0
        fp32 = self.peak("fp32_tflops_peak") * 1e3
        bf16, fp8 = self.peak("bf16_tflops_peak") * 1e3, self.peak("fp8_tflops_peak") * 1e3
        drawn = {"FP32": True, "BF16": tensor or best_gflops > fp32, "FP8": best_gflops > bf16}
        values = zip(drawn, (fp32, bf16, fp8), strict=True)
        return [(f"{name} peak", value) for name, value in values if value > 0 and drawn[name]]

    def peaks_text(self) -> str:
        """Returns the source of the peaks and whether they were measured: "NVIDIA L4 data sheet, not measured"."""
        first: Row = next(iter(as_rows(self.gpus)), {})
        source, origins = text(first, "source"), text(first, "origins").split(",")
        measured = "measured" if "measured" in origins else "not measured"
        return f"{source}, {measured}" if source else ""


def ranked(cases: Iterable[object]) -> list[str]:
    """Returns the cases of traced launches, the most frequent first: of a variant's, the first one is shown."""
    return [str(case) for case, _ in Counter(cases).most_common()]


def words(status: object, own_limits: object = "") -> str:
    """Returns a status for display: "compile error", or "not run" beyond a limit that the variant sets itself."""
    return status_words(str(status), str(own_limits))


def gap_text(status: str, reason: str, own_limits: str = "") -> str:
    """Returns the text to draw instead of a bar: "" if the status is ok, else status and reason on one line."""
    if status == "ok":
        return ""
    reason = one_line(reason)
    if status == "missing":
        return reason or "not measured"
    shown = words(status, own_limits)
    return f"{shown}: {reason}" if reason and reason != status else shown


def _typical(rows: pd.DataFrame, column: str) -> float:
    return float(pd.to_numeric(rows[column], errors="coerce").median()) if column in rows else np.nan


def _with_l1(wide: pd.DataFrame) -> pd.DataFrame:
    """Returns the metrics by variant with no more wavefronts of shared memory than L1 had."""
    for variant, row in zip(wide.index, as_rows(wide), strict=True):
        for name, count in no_more_than_l1({name: number(row, name) for name in WAVEFRONTS}).items():
            wide.loc[variant, name] = count
    return wide


def _within(lost: float, lines: Sequence[Row]) -> list[Row]:
    """Returns the lines of a kernel, without wavefronts lost to bank conflicts if these are not what it loses."""
    told = sum(max(0.0, number(row, _EXCESS)) for row in lines)
    return [{**row, _EXCESS: np.nan} for row in lines] if lost < _MOSTLY * told else list(lines)


def _of_main_kernel(rows: pd.DataFrame) -> pd.DataFrame:
    """Selects the rows of the longest kernel from those of one variant and case."""
    records = as_rows(rows[["kernel", "launch", "metric", "value"]])
    main = longest_kernel(records)
    return rows[[kernel_key(row) == main for row in records]]


def load(folder: Path, family: str) -> FigureTables:
    """Reads the tables of `family` from `folder` (`<table>.parquet`, else `<table>.csv`).

    Raises:
        WarplogError: if a table is missing, too large, not readable or lacks a column, or if the family is missing.
    """
    return of_family(read_all(folder), folder, family)


def read_all(folder: Path) -> dict[str, pd.DataFrame]:
    """Reads the tables of all families, by name; those in OPTIONAL may be missing.

    Raises:
        WarplogError: if a table is missing, too large, not readable or lacks a column.
    """
    names = [n for n in (*TABLES, *OPTIONAL) if n not in OPTIONAL or any(folder.glob(f"{n}.*"))]
    return {name: read_table(folder, name) for name in names}


def with_floors(measurements: pd.DataFrame, floors: pd.DataFrame) -> pd.DataFrame:
    """Returns the table `measurements` with the columns of the table `floors` that a verdict at rest needs."""
    key = ["family", "variant", "case", "gpu"]
    rest = floors.loc[floors["regime"] == "rest", [*key, "deviation", "freedom", "groups"]]
    return measurements.merge(rest.drop_duplicates(key), on=key, how="left")


def of_family(tables: Mapping[str, pd.DataFrame], folder: Path, family: str) -> FigureTables:
    """Selects the rows of `family` from the tables that were read from `folder`.

    Raises:
        WarplogError: if the family is missing.
    """
    return of_families(tables, folder, (family,))[family]


def of_families(
    tables: Mapping[str, pd.DataFrame], folder: Path, families: Collection[str]
) -> dict[str, FigureTables]:
    """Selects the rows of each of these families; as `of_family`."""
    rows = {n: dict(iter(t.groupby("family", sort=False))) for n, t in tables.items() if n not in _OF_GPU}
    if unknown := [family for family in families if family not in rows["variants"]]:
        names = ", ".join(sorted(map(str, rows["variants"]))) or "none"
        raise WarplogError(f"{folder}/variants: {unknown[0]}: no such family; the table contains {names}")
    return {
        family: _of_one({n: rows[n].get(family, t.iloc[:0]) if n in rows else t for n, t in tables.items()})
        for family in families
    }


def _of_one(own: dict[str, pd.DataFrame]) -> FigureTables:
    """Returns the tables of a family, given their rows."""
    if "floors" in own:
        own["measurements"] = with_floors(own["measurements"], own["floors"])
    if "ladder" in own:
        own["places"] = own.pop("ladder")
    return FigureTables(**{name: table.reset_index(drop=True) for name, table in own.items()})
