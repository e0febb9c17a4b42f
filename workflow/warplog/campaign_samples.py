"""What a campaign measured, as two campaigns are compared: samples, counters and the conditions of each case."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplog import layout
from warplog.errors import WarplogError
from warplog.records import Record, read_json
from warplog.verdicts import Samples

# The counters that a comparison looks at; extensive ones are summed over a case's kernels.
SUMMED = ("instructions_executed", "dram_bytes", "l2_bytes", "shared_wavefronts")
LARGEST = ("registers_per_thread",)
CONDITIONS = ("gpu_name", "driver", "clocks")
_REMARKED = ("gpu_uuid", "nvcc", "cuda_runtime")
_MOST_SAMPLES, _MOST_VALUE = 1_000_000, 1e12

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Measured:
    """One case of one variant.

    Attributes:
        status: "ok", or that of the first stage that is not; `reason` says why.
        conditions: what must be equal for a comparison (gpu_name, driver, clocks), as recorded.
        remarks: what may differ but should be told (board, compiler, throttle reasons).
        samples: cold times, and SM clocks where recorded; None where the status is not ok.
        counters: the key counters that the profiler could read.
    """

    status: str
    reason: str
    conditions: Mapping[str, str]
    remarks: Mapping[str, str]
    samples: Samples | None
    counters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Campaign:
    """All that a campaign timed, by family, variant and case; `failed` holds variants without cases."""

    name: str
    cases: Mapping[Key, Measured]
    failed: Mapping[tuple[str, str], str]


def root(name: str, project: Path) -> Path:
    """The folder that `name` means: a results folder, or a campaign in results/recorded/ of `project`.

    Raises:
        WarplogError: it is neither.
    """
    if (Path(name) / "time").is_dir():
        return Path(name)
    recorded = project / layout.RECORDED / name
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name) and (recorded / "time").is_dir():
        return recorded
    known = sorted(p.name for p in (project / layout.RECORDED).glob("[a-z0-9]*") if p.is_dir())
    raise WarplogError(
        f"{name}: no results folder with timings, and no recorded campaign ({', '.join(known) or 'none here'})"
    )


def load(folder: Path, gpu: str = "") -> Campaign:
    """The timings and counters in `folder`, of its only GPU or of the one called `gpu`.

    Raises:
        WarplogError: the folder holds no timings, or those of several GPUs; a record is not readable.
    """
    found = sorted({path.parent.parent.name for path in folder.glob("time/*/*/*.json")})
    if len(found) != 1 and gpu not in found:
        what = f"several GPUs ({', '.join(found)}); name one with --gpu" if found else "no timings"
        raise WarplogError(f"{folder}/time: {what}")
    cases: dict[Key, Measured] = {}
    failed: dict[tuple[str, str], str] = {}
    for path in sorted((folder / "time" / (gpu if gpu in found else found[0])).glob("*/*.json")):
        record: Record = read_json(path, "record")
        variant = (path.parent.name, path.stem)
        extracted = folder / "extract" / path.relative_to(folder / "time")
        counters = _counters(read_json(extracted, "record")) if extracted.is_file() else {}
        if not record.get("cases"):
            failed[variant] = f"{record['status']}: {record['reason']}".rstrip(": ")
        for case in record.get("cases", ()):
            name = str(case["case"])
            cases[(*variant, name)] = _measured(record, case, counters.get(name, {}), path)
    return Campaign(str(folder), cases, failed)


def _measured(record: Record, case: Mapping[str, Any], counters: Mapping[str, float], path: Path) -> Measured:
    made = record.get("provenance", {})
    status, reason = str(case["status"]), str(case.get("reason", ""))
    check = str(record.get("check", "missing"))
    if status == "ok" and check != "ok":
        status, reason = "wrong" if check == "wrong" else check, "its answer was not shown to be right"
    remarks = {name: str(made.get(name, "")) for name in _REMARKED}
    remarks["throttle"] = ", ".join(map(str, case.get("throttle_reasons", ())))
    samples = _samples(case.get("cold"), f"{path}: case {case['case']}") if status == "ok" else None
    conditions = {name: str(made.get(name, "unknown")) for name in CONDITIONS}
    return Measured(status, reason, conditions, remarks, samples, counters)


def _samples(cold: Any, where: str) -> Samples:
    times = _numbers(cold.get("samples_us") if isinstance(cold, dict) else None)
    if not times:
        raise WarplogError(f"{where}: no samples that are positive numbers; time the variant again")
    clocks = _numbers(cold.get("sm_mhz_samples"))
    return Samples(times, clocks if len(clocks) == len(times) else None)


def _numbers(values: Any) -> tuple[float, ...]:
    """The values where all of them are positive and below 1e12, else none."""
    if not isinstance(values, list) or len(values) > _MOST_SAMPLES:
        return ()
    right = all(type(v) in (int, float) and 0 < v < _MOST_VALUE for v in values)
    return tuple(float(v) for v in values) if right else ()


def _counters(record: Record) -> dict[str, dict[str, float]]:
    """The key counters by case: sums over its kernels, or the largest; none where one kernel lacks it."""
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
