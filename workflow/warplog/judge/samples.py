"""Reads what the comparison of campaigns requires: times per process, counters and conditions of each case."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from warplog.analysis.verdicts import Timed
from warplog.core import paths, store
from warplog.core.errors import WarplogError
from warplog.core.records import FamilyRecord, Record, read_json, sustained_runs
from warplog.core.verification.invariants import shown_correct
from warplog.records import manifest

# The counters that are compared: sums over the kernels of a case, and maxima.
SUMMED = ("instructions_executed", "dram_bytes", "l2_bytes", "shared_wavefronts")
LARGEST = ("registers_per_thread",)
CONDITIONS = ("gpu_name", "driver", "clocks")
_REMARKED = ("gpu_uuid", "nvcc", "cuda_runtime")
_MOST_SAMPLES, _MOST_VALUE = 1_000_000, 1e12

_NO_CHECK = {"status": "missing", "reason": "the campaign has no check of it"}

# Rest: cold launches with pauses, so that no limit acts. Sustained: back to back until a limit lowers the clock.
REST, SUSTAINED = REGIMES = ("rest", "sustained")

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Samples:
    """Times of one case in one process in microseconds, and the SM clock of each in MHz if it was recorded."""

    times_us: tuple[float, ...]
    sm_mhz: tuple[float, ...] | None = None

    @cached_property
    def median_us(self) -> float:
        """The median time in microseconds."""
        return median(self.times_us)

    @cached_property
    def median_cycles(self) -> float | None:
        """The median number of SM cycles, None without clocks."""
        if self.sm_mhz is None:
            return None
        return median(us * mhz for us, mhz in zip(self.times_us, self.sm_mhz, strict=True))


@dataclass(frozen=True)
class Measured:
    """The measurement of one case of one variant.

    Attributes:
        status: "ok", or that of the first stage that is not ok; `reason` states why.
        conditions: what must be equal for a comparison (gpu_name, driver, clocks), as recorded.
        remarks: what may differ but is reported (board, compiler, throttle reasons).
        processes: the cold samples of each process, with SM clocks if recorded; empty if the status is not ok.
        sustained_us: mean time per launch of each process in the sustained regime; empty if not measured.
        counters: those of SUMMED and LARGEST that the profiler could read.
        source: fingerprint of the measured source, its headers and parameters.
        times: by regime the time that is compared; see floors.with_times.
    """

    status: str
    reason: str
    conditions: Mapping[str, str]
    remarks: Mapping[str, str]
    processes: tuple[Samples, ...]
    sustained_us: tuple[float, ...] = ()
    counters: Mapping[str, float] = field(default_factory=dict)
    source: str = ""
    times: Mapping[str, Timed] = field(default_factory=dict)

    @property
    def cycles(self) -> float | None:
        """The median of the processes' medians in SM cycles; None without clocks."""
        found = [one.median_cycles for one in self.processes]
        return median(cycles for cycles in found if cycles) if found and all(found) else None

    def numbers(self, regime: str = REST) -> tuple[float, ...]:
        """Returns one time per process in microseconds: the medians at rest, or the means when sustained."""
        return self.sustained_us if regime == SUSTAINED else tuple(one.median_us for one in self.processes)


@dataclass(frozen=True)
class Campaign:
    """The measurements of a campaign, by family, variant and case.

    Attributes:
        failed: status and reason of variants that have no cases.
        rounds: its A/A rounds, each a whole measurement of the same variants in fresh processes; may be empty.
        started: start time, ISO 8601 UTC; commit: the measured commit; "" if unknown.
    """

    name: str
    cases: Mapping[Key, Measured]
    failed: Mapping[tuple[str, str], str] = field(default_factory=dict)
    rounds: tuple["Campaign", ...] = ()
    started: str = ""
    commit: str = ""


def load(folder: Path, gpu: str = "", counted: bool = True) -> Campaign:
    """Loads the timings and counters in `folder` and its A/A rounds, for its only GPU or the one with slug `gpu`.

    Without `counted`, no counters are read, which takes half as long.

    Raises:
        WarplogError: the folder has no timings, or timings of several GPUs but not of `gpu`; a record is not readable;
            a file is not as the manifest of a recorded campaign says.
    """
    manifest.check(folder)
    found = gpus(folder)
    if len(found) != 1 and gpu not in found:
        what = f"several GPUs ({', '.join(found)}); name one with --gpu" if found else "no timings"
        raise WarplogError(f"{folder}/time: {what}")
    gpu = gpu if gpu in found else found[0]
    cases: dict[Key, Measured] = {}
    failed: dict[tuple[str, str], str] = {}
    for path in store.glob(folder, f"time/{gpu}/*.json"):
        counts = paths.family_record(folder, "extract", gpu, path.stem)
        extracted = FamilyRecord.read_if_there(counts).variants if counted else {}
        checked = paths.family_record(folder, "check", gpu, path.stem)
        checks = FamilyRecord.read(checked).variants if store.is_file(checked) else None
        for variant, timed in FamilyRecord.read(path).variants.items():
            key = (path.stem, variant)
            record = timed
            if checks is not None:  # A/A rounds have no checks of their own
                record = shown_correct(timed, checks.get(variant, _NO_CHECK))
            counters = _counters(extracted.get(variant, {}))
            if not record.get("cases"):
                failed[key] = f"{record['status']}: {record['reason']}".rstrip(": ")
            for case in record.get("cases", ()):
                name = str(case["case"])
                where = f"{path}: {variant}: case {name}"
                cases[(*key, name)] = _measured(record, case, counters.get(name, {}), where)
    named = folder / "campaign" / f"{gpu}.json"
    about: Record = read_json(named, "record") if named.is_file() else {}
    origin = (str(about.get(key, "")) for key in ("started", "commit"))
    rounds = load_rounds(folder, gpu, counted)
    return Campaign(about.get("campaign", str(folder)), cases, failed, rounds, *origin)


def load_rounds(folder: Path, gpu: str, counted: bool = True) -> tuple[Campaign, ...]:
    """Loads the A/A rounds of a GPU below `folder`, in order; each is a results folder, aa/round<n>.

    Raises:
        WarplogError: a record is not readable.
    """
    found = {path.parents[2] for path in store.glob(folder, f"aa/round*/time/{gpu}/*.json")}
    return tuple(load(path, gpu, counted) for path in sorted(found, key=lambda p: (len(p.name), p.name)))


def gpus(folder: Path) -> list[str]:
    """Returns the slugs of the GPUs with timings in the folder."""
    return sorted({path.parent.name for path in store.glob(folder, "time/*/*.json")})


def _measured(record: Record, case: Mapping[str, Any], counters: Mapping[str, float], where: str) -> Measured:
    made = record.get("provenance", {})
    status, reason = str(case["status"]), str(case.get("reason", ""))
    check = str(record.get("check", "missing"))
    if status == "ok" and check != "ok":
        status, reason = check, "its answer was not shown to be correct"
    remarks = {name: str(made.get(name, "")) for name in _REMARKED}
    # The driver reports a limit for a while after it acted; the clock that was set says more.
    clocks = any(one["set_mhz"] for one in case.get("processes", ()))
    remarks["throttle"] = "" if clocks else ", ".join(map(str, case.get("throttle_reasons", ())))
    processes, sustained = (_processes(case, where), _sustained(case, where)) if status == "ok" else ((), ())
    conditions = {name: str(made.get(name, "unknown")) for name in CONDITIONS}
    source = str(record.get("source_sha256", ""))
    return Measured(status, reason, conditions, remarks, processes, sustained, counters, source)


def _processes(case: Mapping[str, Any], where: str) -> tuple[Samples, ...]:
    """Returns the cold samples of each process: their parts of the list of all samples, in its order.

    The clock of a process is the set one if it was recorded: what the clock generator skips below it is the kernel's
    own doing.
    """
    cold: Any = case.get("cold")
    times = _numbers(cold.get("samples_us") if isinstance(cold, dict) else None)
    if not times:
        raise WarplogError(f"{where}: the samples are not a list of positive numbers; time the variant again")
    clocks = _numbers(cold.get("sm_mhz_samples"))
    counted = sum(one["samples"] for one in case["processes"])
    if counted != len(times):
        why = f"its processes have {counted} samples, the case has {len(times)}"
        raise WarplogError(f"{where}: {why}; time the variant again")
    found, start = [], 0
    for one in case["processes"]:
        end = start + one["samples"]
        mhz = clocks[start:end] if len(clocks) == len(times) else None
        if one["set_mhz"]:
            mhz = (float(one["set_mhz"]),) * one["samples"]
        found.append(Samples(times[start:end], mhz))
        start = end
    return tuple(one for one in found if one.times_us)


def _sustained(case: Mapping[str, Any], where: str) -> tuple[float, ...]:
    measured = sustained_runs(case)
    found = _numbers([one.get("mean_us") for one in measured])
    if len(found) != len(measured):
        raise WarplogError(f"{where}: the sustained times are not positive numbers; time the variant again")
    return found


def _numbers(values: Any) -> tuple[float, ...]:
    """Returns the values if all of them are numbers above 0 and below 1e12, else ()."""
    if not isinstance(values, list) or len(values) > _MOST_SAMPLES:
        return ()
    valid = all(type(v) in (int, float) and 0 < v < _MOST_VALUE for v in values)
    return tuple(float(v) for v in values) if valid else ()


def _counters(record: Record) -> dict[str, dict[str, float]]:
    """Returns the counters by case, as sums or maxima over its kernels; one that a kernel lacks is left out."""
    found: dict[str, dict[str, list[float | None]]] = {}
    for row in record.get("rows", ()):
        if row["tool"] == "ncu" and row["metric"] in (*SUMMED, *LARGEST):
            value = row["value"] if type(row["value"]) in (int, float) else None
            found.setdefault(str(row["case"]), {}).setdefault(row["metric"], []).append(value)
    return {
        case: {
            name: (sum if name in SUMMED else max)(known)
            for name, values in metrics.items()
            if (known := [v for v in values if v is not None]) and len(known) == len(values)
        }
        for case, metrics in found.items()
    }
