"""Builds the rows of the tables from the records of all variants."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from warplog.catalog.family import Family, Variant
from warplog.catalog.header import read_header
from warplog.core import remarks
from warplog.core.columns import TABLES
from warplog.core.records import Record, sustained_runs
from warplog.core.remarks import Remark
from warplog.machine.device import Peaks
from warplog.records.campaign import Gpu
from warplog.tables import published, timelines
from warplog.tables.agreement import Agreement, agreement, other_pass
from warplog.tables.launched import launched_columns
from warplog.tables.library import library_kernels
from warplog.tables.records import FamilyRecords, Source, VariantRecords, build_record
from warplog.tables.stages import stage_rows

Row = dict[str, Any]
_FULL_CLOCK = 0.99  # as in the measurement: one step of the clock is 0.8 %


def make_rows(
    source: Source,
    families: Mapping[str, Family],
    cases: Mapping[str, tuple[str, ...]],
    chosen: Mapping[str, tuple[Variant, ...]],
    gpu: Gpu,
    peaks: Peaks,
) -> dict[str, list[Row]]:
    """Returns the rows of every table, by table.

    Args:
        source: the campaign that the records are read from.
        families: all families, by name.
        cases: the timed cases of each family.
        chosen: the variants of each family that get rows.
        gpu: the GPU of the measurements, and its `peaks`.

    Raises:
        WarplogError: a record is not readable.
    """
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    for name, variants in chosen.items():
        family = families[name]
        ladder = family.ladder(variants)
        measured: list[Row] = []
        stored = FamilyRecords(source, name)
        for variant in variants:
            build = build_record(source.root, source.arch, variant, source.results)
            records = stored.of(variant.name, build)
            rows["variants"].append(_variant_row(family, variant, ladder, records, source))
            rows["stages"] += stage_rows(records, stored.captures(variant.name), source, name, variant.name)
            is_old = (
                source.origin == "recorded" and records.time.get("source_sha256", "") != variant.fingerprint()
            )
            old = [{"code": "earlier_source"}] if is_old else []
            measured += (_measurement(family, variant, case, records, source, old) for case in cases[name])
            rows["metrics"] += _metric_rows(family, variant, records, source)
            library = library_kernels(records.extract) if variant.library else ()
            found = {
                "library_kernels": (library, records.board("nsys") or records.board("ncu")),
                "power_trace": (_traces(family, cases[name], records), records.board("time")),
                "timeline": (records.extract["timeline"], records.board("nsys")),
                "lines": (records.extract["lines"], records.board("ncu")),
            }
            key = {"family": name, "variant": variant.name, **source.labels()}
            for table, (own, board) in found.items():
                rows[table] += ({**key, **row, "board": board} for row in own)
            if variant.name in family.timeline:
                for table, own in timelines.rows(
                    stored.timeline(variant.name), variant, source.origin
                ).items():
                    rows[table] += ({**key, **row} for row in own)
        add_ratios(measured, family.baseline)
        rows["measurements"] += measured
        rows["published"] += published.rows(family, measured)
    named = {"gpu": source.gpu, "gpu_name": gpu.name, "max_sm_mhz": gpu.max_sm_mhz}
    rows["gpus"].append({**named, **asdict(peaks)})
    return rows


def add_ratios(rows: list[Row], baseline: str) -> None:
    """Adds the speed-up over the baseline at the same case, in both regimes, to rows with a time for both.

    The ends of the ratio at rest, `ratio_q1` and `ratio_q3`, are those of the spread between the processes; a row
    from a single process has the quartiles of its samples instead. A row whose baseline was measured on another board
    gets a remark instead of a ratio.
    """
    baselines = {r["case"]: r for r in rows if r["variant"] == baseline}
    for row in rows:
        row["baseline"] = baseline
        base = baselines.get(row["case"], {})
        if base.get("median_us") and row.get("median_us") and base.get("board") != row.get("board"):
            row["remarks"] = remarks.cell((*remarks.read(row.get("remarks")), {"code": "other_board"}))
            continue
        if base.get("median_us") and row.get("median_us"):
            several = row.get("processes", 1) > 1
            slow, fast = ("process_max_us", "process_min_us") if several else ("q3_us", "q1_us")
            row["ratio_to_baseline"] = base["median_us"] / row["median_us"]
            row["ratio_q1"] = base["median_us"] / row[slow]
            row["ratio_q3"] = base["median_us"] / row[fast]
        if base.get("sustained_us") and row.get("sustained_us"):
            row["sustained_ratio_to_baseline"] = base["sustained_us"] / row["sustained_us"]


def _measurement(
    family: Family,
    variant: Variant,
    case: str,
    records: VariantRecords,
    source: Source,
    old: Sequence[Remark],
) -> Row:
    """Returns the row of a case; `old` is the remark on times of an earlier source, if they are."""
    problem = family.cases[case]
    row: Row = {
        "family": family.name,
        "variant": variant.name,
        "case": case,
        "size": int(family.value(family.work.size, problem)),
        "source_sha256": records.time.get("source_sha256", ""),
        "measured_at": records.time.get("provenance", {}).get("finished", ""),
        "commit": records.time.get("provenance", {}).get("commit", ""),
        "clocks": records.time.get("provenance", {}).get("clocks", ""),
        "board": records.board("time"),
        **source.labels(),
    }
    status, reason = records.verdict()
    found = next((c for c in records.time["cases"] if c["case"] == case), None)
    if found is None or found["status"] == "skipped":
        return row | {
            "status": "missing" if status == "ok" else status,
            "reason": reason or "the case was not timed",
        }
    row |= {"status": found["status"], "reason": found["reason"]}
    if limits := found.get("own_limits"):
        row["own_limits"] = json.dumps(limits)
    if found["status"] == "ok":
        row |= _times(family, case, found, records)
        row["remarks"] = remarks.cell([*found.get("remarks", ()), *old, *variant.remarks])
    return row


def _times(family: Family, case: str, found: Record, records: VariantRecords) -> Row:
    problem, cold, hot = family.cases[case], found["cold"], found.get("hot", {})
    kept = (
        "median_us",
        "q1_us",
        "q3_us",
        "min_us",
        "max_us",
        "mean_us",
        "samples",
        "rel_spread",
        "empty_us",
        "sm_mhz",
    )
    median = cold["median_us"]
    ncu_us, kernels = _duration(records.extract["rows"], case, "duration_us", "ncu")
    nsys_us, _ = _duration(records.extract["rows"], case, "nsys_duration_us", "nsys")
    _, parts = _duration(records.extract["rows"], case, "nsys_kernel_duration_us", "nsys")
    errors = [
        c["max_error_over_tolerance"] for c in records.check["cases"] if "max_error_over_tolerance" in c
    ]
    compared = _agreement(family, case, found, records, (ncu_us, nsys_us), max(kernels, parts))
    return {
        **{k: cold[k] for k in kept},
        **processes_columns(found),
        "set_mhz": cold["set_mhz"],
        "discarded": cold["discarded"],
        "first_launch_us": found["first_launch_us"],
        "launch_host_us": found["launch_host_us"],
        "hot_us": hot.get("median_us"),
        "hot_rel_spread": hot.get("rel_spread"),
        **sustained_columns(found, family.value(family.work.flops, problem), case in family.profile_cases),
        "power_w": found["power_w"],
        "temperature_c": found["temperature_c"],
        "throttle_reasons": ",".join(found["throttle_reasons"]),
        "gflops": family.value(family.work.flops, problem) / median / 1e3 if median > 0 else None,
        "gbytes_per_s": family.value(family.work.bytes, problem) / median / 1e3 if median > 0 else None,
        "max_error_over_tolerance": max(errors, default=None),
        "ncu_us": ncu_us,
        "nsys_us": nsys_us,
        "agreement": compared.code,
        "agreement_notes": remarks.cell(compared.notes),
    }


def _agreement(
    family: Family,
    case: str,
    found: Record,
    records: VariantRecords,
    profilers_us: tuple[float | None, float | None],
    kernels: int,
) -> Agreement:
    if family.measuring.timing != "stream":
        return Agreement("")
    rest = [one["median_us"] for one in found["processes"]]
    hot = [one["hot_us"] for one in found["processes"] if "hot_us" in one]
    captured: Record = next((one for one in records.nsys["cases"] if one["case"] == case), {})
    elsewhere = [tool for tool in ("ncu", "nsys") if records.board(tool) not in ("", records.board("time"))]
    other_us = _other_pass(records.extract["rows"], case)
    return agreement(rest, hot, *profilers_us, kernels, captured.get("traced_us"), elsewhere, other_us)


def _other_pass(rows: list[Row], case: str) -> float | None:
    """Returns the time of another of ncu's passes over a case's only kernel; None if it cannot be told."""
    needed = ("duration_us", "gpu_cycles", "sm_mhz_in_ncu")
    found = {name: _duration(rows, case, name, "ncu") for name in needed}
    values = [value for value, kernels in found.values() if kernels == 1 and value]
    return other_pass(*values) if len(values) == len(needed) else None


def _traces(family: Family, cases: tuple[str, ...], records: VariantRecords) -> Iterator[Row]:
    for found in records.time["cases"]:
        if found["case"] in cases:
            flops = family.value(family.work.flops, family.cases[found["case"]])
            yield from ({"case": found["case"], **row} for row in power_trace_rows(found, flops))


def _duration(rows: list[Row], case: str, metric: str, tool: str) -> tuple[float | None, int]:
    """Returns the sum of the durations of a case's kernels (None if any is missing), and their number."""
    values = [r["value"] for r in rows if r["metric"] == metric and r["case"] == case and r["tool"] == tool]
    return (sum(values) if values and None not in values else None), len(values)


def _metric_rows(family: Family, variant: Variant, records: VariantRecords, source: Source) -> Iterator[Row]:
    key = {"family": family.name, "variant": variant.name}
    build = records.build
    labels = source.labels()
    origin = {**labels, "origin": build.get("origin", labels["origin"])}
    for kernel in build.get("kernels", ()):
        yield from ({**key, **origin, **row} for row in _build_facts(kernel, build["tools"]))
    for row in records.extract["rows"]:
        board = records.board(row["tool"]) if row["tool"] in ("ncu", "nsys") else ""
        yield {**key, **labels, "board": board, **row}


def _build_facts(kernel: Record, tools: Mapping[str, str]) -> Iterator[Row]:
    common = {"case": "", "kernel": kernel["kernel"], "launch": 0, "status": "ok", "reason": ""}
    # Otherwise the kernel was compiled elsewhere, or by a Python package.
    from_log = "nvcc" in tools and "spill_store_bytes" in kernel
    by_ptxas = {"tool": "ptxas", "tool_version": tools.get("nvcc", "")}
    reader = {"tool": "cuobjdump", "tool_version": tools.get("cuobjdump", "")}
    resources = (
        "static_shared_bytes",
        "dynamic_shared_bytes",
        "stack_bytes",
        "spill_store_bytes",
        "spill_load_bytes",
        "registers_per_thread",
    )
    for metric in (name for name in resources if name in kernel):
        unit = "B" if metric.endswith("_bytes") else "registers"
        yield {
            **common,
            "metric": metric,
            "value": kernel[metric],
            "unit": unit,
            **(by_ptxas if from_log else reader),
        }
    counts = {"sass_instructions": kernel["sass_instructions"]}
    counts |= {f"sass_{opcode}": count for opcode, count in kernel["opcodes"].items()}
    for metric, count in counts.items():
        yield {
            **common,
            "metric": metric,
            "value": count,
            "unit": "instructions",
            **reader,
        }


def _variant_row(
    family: Family,
    variant: Variant,
    ladder: tuple[Variant, ...],
    records: VariantRecords,
    source: Source,
) -> Row:
    headline = family.cases[family.headline_case]
    status, reason = records.verdict()
    return {
        "family": family.name,
        "variant": variant.name,
        "language": variant.language,
        "order": ladder.index(variant),
        "rungs": len(ladder),
        "parent": variant.parent,
        "idea": variant.idea,
        "note": variant.note,
        "credit": variant.credit,
        "expected": variant.expected or read_header(variant.file).expected,
        "is_baseline": variant.name == family.baseline,
        "headline_case": family.headline_case,
        "profile_cases": ",".join(family.profile_cases),
        "size_label": family.work.size_label,
        "title": family.title,
        "limit": family.work.limit,
        "flops": family.value(family.work.flops, headline),
        "bytes": family.value(family.work.bytes, headline),
        "parameters": json.dumps(dict(variant.parameters)),
        "compile": variant.compile.text(),
        "status": status,
        "reason": reason,
        "remarks": remarks.cell(variant.remarks),
        **launched_columns(family, records.build.get("kernels", ()), records.extract),
        "build_origin": records.build.get("origin", ""),
        "source_sha256": variant.fingerprint(),
        **source.labels(),
    }


def processes_columns(found: Record) -> Row:
    """Returns the columns on the processes that measured a case."""
    medians = [one["median_us"] for one in found["processes"]]
    least, most = min(medians), max(medians)
    spread = most / least - 1 if len(medians) > 1 and least > 0 else None
    return {
        "processes": len({one["process"] for one in found["processes"]}),
        "process_spread": spread,
        "process_min_us": least,
        "process_max_us": most,
    }


def sustained_columns(found: Record, flops: float, is_captured: bool = True) -> Row:
    """Returns the columns on back-to-back launches.

    If no limit lowers the clock, the sustained time is the hot time; power and energy are then unknown, since the hot
    run is too short for the board's readings.

    Args:
        is_captured: whether the profilers capture the case. Only then is the hot run long enough to show a limit, and
            each variant that reaches one measured sustained; the hot time of another case is no sustained time.
    """
    run, set_mhz = found.get("sustained"), found["cold"]["set_mhz"]
    if run is None and is_captured and "hot" in found:
        run = {"mean_us": found["hot"]["median_us"], "sm_mhz": set_mhz, "power_w": None, "limits": []}
    if run is None:
        return {}
    means = [one["mean_us"] for one in sustained_runs(found)]
    return {
        "sustained_us": run["mean_us"],
        "sustained_sm_mhz": run["sm_mhz"],
        "sustained_power_w": run["power_w"],
        "sustained_process_spread": max(means) / min(means) - 1 if len(means) > 1 else None,
        "limited_by": _limit(run, set_mhz),
        **_rates(run["mean_us"], run["sm_mhz"], run["power_w"], flops),
    }


def _rates(us: float, mhz: float | None, power_w: float | None, flops: float) -> Row:
    energy_j = power_w * us * 1e-6 if power_w else None
    return {
        "sustained_gflops": flops / us * 1e-3 if flops else None,
        "energy_j": energy_j,
        "gflop_per_j": flops * 1e-9 / energy_j if energy_j and flops else None,
        "pj_per_flop": energy_j * 1e12 / flops if energy_j and flops else None,
        "tflops_per_ghz": flops / us * 1e-3 / mhz if mhz and power_w and flops else None,
    }


def _limit(run: Record, rest_mhz: float | None) -> str:
    """Returns the kind of limit that lowered the clock: power, temperature, other, or "" for none."""
    reasons = run["limits"]
    if rest_mhz and run["sm_mhz"] and run["sm_mhz"] >= _FULL_CLOCK * rest_mhz:
        return ""
    if not reasons:
        return "other" if rest_mhz and run["sm_mhz"] else ""
    if "sw_power_cap" in reasons or "hw_power_brake_slowdown" in reasons:
        return "power"
    return "temperature" if any("thermal" in reason for reason in reasons) else "other"


def power_trace_rows(found: Record, flops: float) -> Iterator[dict[str, Any]]:
    """Yields rows of the table `power_trace`: the GPU's readings over time, with the rate of the launches then."""
    run = found.get("sustained", {})
    if "trace" not in run:
        return
    samples_us = np.asarray(run["samples_us"])
    launches = sustained_runs(found)[0]["launches"] / samples_us.size  # per batch
    ends_s = np.cumsum(samples_us) * launches * 1e-6
    for i, time_s in enumerate(run["trace"]["time_s"]):
        here = min(int(np.searchsorted(ends_s, time_s)), samples_us.size - 1)
        yield {
            **{name: values[i] for name, values in run["trace"].items()},
            "gflops": flops / float(samples_us[here]) * 1e-3 if flops else None,
        }
