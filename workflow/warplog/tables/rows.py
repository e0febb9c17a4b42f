"""Builds the rows of the tables from the records of all variants."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from warplog.catalog.family import Family, Variant
from warplog.core import remarks, text
from warplog.core.columns import TABLES
from warplog.core.records import Record
from warplog.machine.device import Gpu, Peaks
from warplog.tables import published
from warplog.tables.library import library_kernels
from warplog.tables.records import FamilyRecords, Source, VariantRecords, build_record
from warplog.tables.stages import stage_rows

Row = dict[str, Any]
AGREE_RELATIVE, AGREE_US = 0.03, 1.0


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
            build = build_record(source.root, source.arch, variant)
            records = stored.of(variant.name, build)
            rows["variants"].append(_variant_row(family, variant, ladder, records, source))
            rows["stages"] += stage_rows(records, stored.captures(variant.name), source, name, variant.name)
            measured += (_measurement(family, variant, case, records, source) for case in cases[name])
            rows["metrics"] += _metric_rows(family, variant, records, source)
            found = {
                "library_kernels": library_kernels(records.extract) if variant.library else (),
                "power_trace": _traces(family, cases[name], records),
                "timeline": records.extract["timeline"],
                "lines": records.extract.get("lines", ()),
            }
            key = {"family": name, "variant": variant.name, **source.labels()}
            for table, own in found.items():
                rows[table] += ({**key, **row} for row in own)
        add_ratios(measured, family.baseline)
        rows["measurements"] += measured
        rows["published"] += published.rows(family, measured)
    named = {"gpu": source.gpu, "gpu_name": gpu.name, "max_sm_mhz": gpu.max_sm_mhz}
    rows["gpus"].append({**named, **asdict(peaks)})
    return rows


def add_ratios(rows: list[Row], baseline: str) -> None:
    """Adds the speed-up over the baseline at the same case (ratio of medians) to rows with a time for both."""
    medians = {r["case"]: r.get("median_us") for r in rows if r["variant"] == baseline}
    for row in rows:
        row["baseline"] = baseline
        of_baseline = medians.get(row["case"])
        if of_baseline and row.get("median_us"):
            row["ratio_to_baseline"] = of_baseline / row["median_us"]
            row["ratio_q1"] = of_baseline / row["q3_us"]
            row["ratio_q3"] = of_baseline / row["q1_us"]


def agreement(
    cold_us: float, hot_us: float | None, ncu_us: float | None, nsys_us: float | None, kernels: int = 1
) -> str:
    """Compares timings with the profilers: 'ok', or the times that differ by more than 3 % + 1 us.

    The cold time is compared with ncu's duration, which follows a cache flush, and the hot time with nsys'
    back-to-back launches; '' if neither pair exists. The comparison is inexact for a launch of several
    `kernels`, which the text then mentions: ncu flushes the caches before each kernel and omits the gaps between them.
    """
    pairs = [("cold", cold_us, "ncu", ncu_us), ("hot", hot_us, "nsys", nsys_us)]
    known = [(a, x, b, y) for a, x, b, y in pairs if x is not None and y is not None]
    apart = [
        f"{a} {x:.4g} us, {b} {y:.4g} us"
        for a, x, b, y in known
        if abs(x - y) > AGREE_RELATIVE * y + AGREE_US
    ]
    why = f" ({kernels} kernels per launch, each cold in ncu)" if kernels > 1 else ""
    return f"disagree: {'; '.join(apart)}{why}" if apart else "ok" if known else ""


def _measurement(family: Family, variant: Variant, case: str, records: VariantRecords, source: Source) -> Row:
    problem = family.cases[case]
    row: Row = {
        "family": family.name,
        "variant": variant.name,
        "case": case,
        "size": int(family.value(family.size, problem)),
        "source_sha256": records.time.get("source_sha256", ""),
        "measured_at": records.time.get("provenance", {}).get("finished", ""),
        "commit": records.time.get("provenance", {}).get("commit", ""),
        "clocks": records.time.get("provenance", {}).get("clocks", ""),
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
    if found["status"] == "ok":
        row |= _times(family, case, found, records)
        is_old = source.origin == "recorded" and row["source_sha256"] != variant.fingerprint()
        old = remarks.EARLIER_SOURCE if is_old else ""
        row["reason"] = text.join_notes(row["reason"], old, variant.remark)
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
    return {
        **{k: cold[k] for k in kept},
        "first_launch_us": found.get("first_launch_us"),
        "hot_us": hot.get("median_us"),
        "hot_rel_spread": hot.get("rel_spread"),
        **energy_of_run(found, family.value(family.flops, problem)),
        "power_w": found.get("power_w"),
        "temperature_c": found.get("temperature_c"),
        "throttle_reasons": ",".join(found.get("throttle_reasons", ())),
        "gflops": family.value(family.flops, problem) / median / 1e3 if median > 0 else None,
        "gbytes_per_s": family.value(family.bytes_moved, problem) / median / 1e3 if median > 0 else None,
        "max_error_over_tolerance": max(errors, default=None),
        "ncu_us": ncu_us,
        "nsys_us": nsys_us,
        "agreement": agreement(median, hot.get("median_us"), ncu_us, nsys_us, max(kernels, parts))
        if family.measuring.timing == "stream"
        else "",
    }


def _traces(family: Family, cases: tuple[str, ...], records: VariantRecords) -> Iterator[Row]:
    for found in records.time["cases"]:
        if found["case"] in cases:
            flops = family.value(family.flops, family.cases[found["case"]])
            yield from ({"case": found["case"], **row} for row in power_trace_rows(found, flops))


def _duration(rows: list[Row], case: str, metric: str, tool: str) -> tuple[float | None, int]:
    """Returns the sum of the durations of a case's kernels (None if any is missing), and their number."""
    values = [r["value"] for r in rows if (r["case"], r["metric"], r["tool"]) == (case, metric, tool)]
    return (sum(values) if values and None not in values else None), len(values)


def _metric_rows(family: Family, variant: Variant, records: VariantRecords, source: Source) -> Iterator[Row]:
    key = {"family": family.name, "variant": variant.name}
    build = records.build
    labels = source.labels()
    origin = {**labels, "origin": build.get("origin", labels["origin"])}
    for kernel in build.get("kernels", ()):
        yield from ({**key, **origin, **row} for row in _build_facts(kernel, build["tools"]))
    for row in records.extract["rows"]:
        yield {**key, **labels, **row}


def _build_facts(kernel: Record, tools: Mapping[str, str]) -> Iterator[Row]:
    common = {"case": "", "kernel": kernel["kernel"], "launch": 0, "status": "ok", "reason": ""}
    ptxas = (
        "static_shared_bytes",
        "stack_bytes",
        "spill_store_bytes",
        "spill_load_bytes",
        "registers_per_thread",
    )
    for metric in ptxas:
        unit = "B" if metric.endswith("_bytes") else "registers"
        yield {
            **common,
            "metric": metric,
            "value": kernel[metric],
            "unit": unit,
            "tool": "ptxas",
            "tool_version": tools["nvcc"],
        }
    counts = {"sass_instructions": kernel["sass_instructions"]}
    counts |= {f"sass_{opcode}": count for opcode, count in kernel["opcodes"].items()}
    for metric, count in counts.items():
        yield {
            **common,
            "metric": metric,
            "value": count,
            "unit": "instructions",
            "tool": "cuobjdump",
            "tool_version": tools["cuobjdump"],
        }


def _variant_row(
    family: Family,
    variant: Variant,
    ladder: tuple[Variant, ...],
    records: VariantRecords,
    source: Source,
) -> Row:
    kernels = records.build.get("kernels", ())
    headline = family.cases[family.headline_case]
    status, reason = records.verdict()
    return {
        "family": family.name,
        "variant": variant.name,
        "order": ladder.index(variant),
        "rungs": len(ladder),
        "parent": variant.parent,
        "idea": variant.idea,
        "credit": variant.credit,
        "is_baseline": variant.name == family.baseline,
        "headline_case": family.headline_case,
        "profile_cases": ",".join(family.profile_cases),
        "size_label": family.size_label,
        "title": family.title,
        "limit": family.limit,
        "flops": family.value(family.flops, headline),
        "bytes": family.value(family.bytes_moved, headline),
        "parameters": json.dumps(dict(variant.parameters)),
        "status": status,
        "reason": text.join_notes(reason, variant.remark),
        "registers_per_thread": max((k["registers_per_thread"] for k in kernels), default=None),
        "static_shared_bytes": max((k["static_shared_bytes"] for k in kernels), default=None),
        "spill_bytes": sum(k["spill_store_bytes"] + k["spill_load_bytes"] for k in kernels)
        if kernels
        else None,
        "build_origin": records.build.get("origin", ""),
        "source_sha256": variant.fingerprint(),
        **source.labels(),
    }


def energy_of_run(found: Record, flops: float) -> dict[str, float | None]:
    """Returns columns of `measurements` for a timed case with a trace; {} without one.

    hot_power_w is the slope of a line fitted to the GPU's energy counter over the hot run, which is least affected by
    the counter's coarse steps, or the mean of the power readings if there is no counter. The other columns
    follow from it, the mean clock of the run and the median time per launch.
    """
    trace = found.get("trace")
    if not trace:
        return {}
    hot_us = found["hot"]["median_us"]
    power_w, mhz = _power_w(trace), _mean(trace["sm_mhz"])
    energy_j = power_w * hot_us * 1e-6 if power_w else None
    return {
        "hot_power_w": power_w,
        "hot_sm_mhz": mhz,
        "energy_j": energy_j,
        "gflop_per_j": flops * 1e-9 / energy_j if energy_j and flops else None,
        "pj_per_flop": energy_j * 1e12 / flops if energy_j and flops else None,
        "tflops_per_ghz": flops / hot_us * 1e-3 / mhz if mhz and flops else None,
    }


def power_trace_rows(found: Record, flops: float) -> Iterator[dict[str, Any]]:
    """Yields rows of the table `power_trace`: the GPU's readings over time, with the rate of the launches then."""
    trace, hot = found.get("trace"), found.get("hot")
    if not trace or not hot:
        return
    samples_us = np.asarray(hot["samples_us"])
    launches = hot["launches"] / samples_us.size  # per sample
    ends_s = np.cumsum(samples_us) * launches * 1e-6
    for i, time_s in enumerate(trace["time_s"]):
        here = min(int(np.searchsorted(ends_s, time_s)), samples_us.size - 1)
        yield {
            **{name: values[i] for name, values in trace.items()},
            "gflops": flops / float(samples_us[here]) * 1e-3 if flops else None,
        }


def _power_w(trace: Mapping[str, Any]) -> float | None:
    readings = [(t, e) for t, e in zip(trace["time_s"], trace["energy_j"], strict=True) if e is not None]
    if len({energy for _, energy in readings}) > 2:
        times, energies = np.array(readings, dtype=np.float64).T
        return float(np.polyfit(times - times[0], energies - energies[0], 1)[0])
    return _mean(trace["power_w"])


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
