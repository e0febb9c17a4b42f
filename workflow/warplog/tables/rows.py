"""Builds the rows of the tables from the records of all variants."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain

import numpy as np
from msgspec import structs

from warplog.catalog.family import Family, Variant
from warplog.catalog.header import read_header
from warplog.core.columns import TABLES, Cell, Row, number
from warplog.machine.device import Peaks
from warplog.parsers.instruction import parse
from warplog.records import remarks
from warplog.records.build import Build, KernelCode
from warplog.records.extract import HotLoop, MetricRow
from warplog.records.fields import Versions
from warplog.records.measured import Absent
from warplog.records.remarks import READINGS, EarlierSource, NotReported, OtherBoard, Remark
from warplog.records.time import Board, Cold, Time, TimeCase
from warplog.tables import published, timelines
from warplog.tables.agreement import Agreement, agreement, other_pass
from warplog.tables.costs import stage_rows
from warplog.tables.launched import launched_columns
from warplog.tables.library import library_kernels
from warplog.tables.regimes import interval_us
from warplog.tables.verified_records import FamilyRecords, Source, VariantRecords, board, build_record

_FULL_CLOCK = 0.99  # as in the measurement: one step of the clock is 0.8 %
_OF_COLD = (
    *("median_us", "q1_us", "q3_us", "min_us", "max_us", "mean_us", "samples", "rel_spread"),
    *("empty_us", "sm_mhz", "set_mhz", "discarded"),
)
_RESOURCES = (
    *("static_shared_bytes", "dynamic_shared_bytes", "stack_bytes"),
    *("spill_store_bytes", "spill_load_bytes", "registers_per_thread"),
)


def make_rows(
    source: Source,
    families: Mapping[str, Family],
    cases: Mapping[str, tuple[str, ...]],
    chosen: Mapping[str, tuple[Variant, ...]],
    peaks: Peaks,
) -> dict[str, list[Row]]:
    """Returns the rows of every table, by table.

    Args:
        source: the campaign that the records are read from.
        families: all families, by name.
        cases: the timed cases of each family.
        chosen: the variants of each family that get rows.
        peaks: those of the GPU of the measurements.

    Raises:
        WarplogError: a record is not readable.
    """
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    gpu = source.campaign.device
    sms = gpu.sms
    for name, variants in chosen.items():
        family = families[name]
        ladder = family.ladder(variants)
        measured: list[dict[str, Cell]] = []
        stored = FamilyRecords(source, name)
        for variant in variants:
            key: Row = {"family": name, "variant": variant.name, **source.labels()}
            build = build_record(source.root, source.campaign.arch, variant, source.results)
            records = stored.records_of(variant.name, build)
            rows["variants"].append({**key, **_variant(family, variant, ladder, records, sms)})
            rows["stages"] += stage_rows(records, source, name, variant.name)
            is_old = source.origin == "recorded" and _source_of(records) != variant.fingerprint()
            old: list[Remark] = [EarlierSource()] if is_old else []
            about = [*old, *variant.remarks]
            measured += ({**key, **_measurement(family, case, records, about, sms)} for case in cases[name])
            further = chain(_built(records.build), _captured(variant, records))
            further = chain(further, _traces(family, cases[name], records.time, sms))
            if variant.name in family.timeline:
                marked = timelines.rows(stored.timeline(variant.name), variant, source.origin)
                further = chain(further, marked)
            for table, row in further:
                rows[table].append({**key, **row})
        add_ratios(measured, family.baseline)
        rows["measurements"] += measured
        rows["published"] += published.rows(family, measured)
    named: Row = {"gpu": gpu.slug, "gpu_name": gpu.name, "max_sm_mhz": gpu.max_sm_mhz}
    memory: Row = {"memory_gib": gpu.memory_bytes / 2**30 or None}
    rows["gpus"].append({**named, **memory, **asdict(peaks), "origins": ",".join(peaks.origins)})
    return rows


def add_ratios(rows: Sequence[dict[str, Cell]], baseline: str) -> None:
    """Adds the speed-up over the baseline at the same case, in both regimes, to rows with a time for both.

    The ends of the ratio at rest, `ratio_q1` and `ratio_q3`, are those of the spread between the processes; a row
    from a single process has the quartiles of its samples instead. A row whose baseline was measured on another board
    gets a remark instead of a ratio.
    """
    baselines = {row["case"]: row for row in rows if row["variant"] == baseline}
    for row in rows:
        row["baseline"] = baseline
        base = baselines.get(row["case"], {})
        base_us, own_us = number(base, "median_us"), number(row, "median_us")
        if base_us > 0 and own_us > 0:
            if base.get("board") != row.get("board"):
                row["remarks"] = remarks.cell((*remarks.read(row.get("remarks")), OtherBoard()))
                continue
            fast_us, slow_us = interval_us(row)
            row["ratio_to_baseline"] = base_us / own_us
            row["ratio_q1"] = base_us / slow_us
            row["ratio_q3"] = base_us / fast_us
        base_us, own_us = number(base, "sustained_us"), number(row, "sustained_us")
        if base_us > 0 and own_us > 0:
            row["sustained_ratio_to_baseline"] = base_us / own_us


def _source_of(records: VariantRecords) -> str:
    """Returns the fingerprint of the timed source; "" if none was timed."""
    return "" if isinstance(records.time, Absent) else records.time.source_sha256


def _measurement(
    family: Family, case: str, records: VariantRecords, about: Sequence[Remark], sms: int
) -> dict[str, Cell]:
    """Returns the row of a case; `about` are the remarks on all times of the variant."""
    row: dict[str, Cell] = {"case": case, "size": int(family.value(family.work.size, family.cases[case]))}
    timed = None
    if isinstance(records.time, Time):
        made = records.time.provenance
        row |= {"source_sha256": records.time.source_sha256, "measured_at": made.finished}
        row |= {"commit": made.commit, "clocks": made.clocks, "board": made.gpu_uuid}
        timed = next((time_case for time_case in records.time.cases if time_case.case == case), None)
    if timed is None or timed.status == "skipped":
        status, reason = records.verdict()
        return row | {
            "status": "missing" if status == "ok" else status,
            "reason": reason or "the case was not timed",
        }
    row |= {"status": timed.status, "reason": timed.reason}
    if timed.own_limits:
        row["own_limits"] = json.dumps(dict(timed.own_limits))
    if timed.cold and timed.board:
        power_w, reasons = timed.board.power_w, ",".join(timed.board.throttle_reasons)
        row |= {"power_w": power_w, "temperature_c": timed.board.temperature_c, "throttle_reasons": reasons}
        row |= _times(family, timed, timed.cold, records, sms)
        row["remarks"] = remarks.cell([*timed.remarks, *_not_reported(timed.board), *about])
    return row


def _not_reported(board: Board) -> list[NotReported]:
    readings = {"sm_mhz": board.sm_mhz, "power_w": board.power_w, "temperature_c": board.temperature_c}
    absent = [name for name in READINGS if readings[name] is None]
    return [NotReported(readings=tuple(absent))] if absent else []


def _times(family: Family, timed: TimeCase, cold: Cold, records: VariantRecords, sms: int) -> Row:
    case = family.cases[timed.case]
    flops, moved = (family.amount(text, case, sms) for text in (family.work.flops, family.work.bytes))
    rows = () if isinstance(records.extract, Absent) else records.extract.rows
    ncu_us, kernels = _duration(rows, timed.case, "duration_us", "ncu")
    nsys_us, _ = _duration(rows, timed.case, "nsys_duration_us", "nsys")
    _, parts = _duration(rows, timed.case, "nsys_kernel_duration_us", "nsys")
    checked = () if isinstance(records.check, Absent) else records.check.cases
    errors = [c.max_error_over_tolerance for c in checked if c.max_error_over_tolerance is not None]
    compared = Agreement("")
    if family.measuring.timing == "stream":
        compared = _agreement(
            timed, records, (ncu_us, nsys_us), max(kernels, parts), _other_pass(rows, timed.case)
        )
    return {
        **{name: getattr(cold, name) for name in _OF_COLD},
        **_of_processes([process.median_us for process in timed.processes]),
        "processes": len({process.process for process in timed.processes}),
        "first_launch_us": timed.first_launch_us,
        "launch_host_us": timed.launch_host_us,
        "hot_us": timed.hot.median_us if timed.hot else None,
        "hot_rel_spread": timed.hot.rel_spread if timed.hot else None,
        **sustained_columns(timed, flops, timed.case in family.profile_cases),
        "gflops": flops / cold.median_us / 1e3,
        "gbytes_per_s": moved / cold.median_us / 1e3,
        "max_error_over_tolerance": max(errors, default=None),
        "max_error_over_scale": timed.max_error_over_scale,
        "ncu_us": ncu_us,
        "nsys_us": nsys_us,
        "agreement": compared.code,
        "agreement_notes": remarks.cell(compared.notes),
    }


def _of_processes(medians_us: Sequence[float]) -> Row:
    least, most = min(medians_us), max(medians_us)
    spread = most / least - 1 if len(medians_us) > 1 and least > 0 else None
    return {"process_spread": spread, "process_min_us": least, "process_max_us": most}


def _agreement(
    timed: TimeCase,
    records: VariantRecords,
    profilers_us: tuple[float | None, float | None],
    kernels: int,
    other_us: float | None,
) -> Agreement:
    rest = [process.median_us for process in timed.processes]
    hot = [process.hot_us for process in timed.processes if process.hot_us is not None]
    nsys = records.captures["nsys"]
    traced = () if isinstance(nsys, Absent) else (c.traced_us for c in nsys.cases if c.case == timed.case)
    elsewhere = [
        tool for tool, capture in records.captures.items() if board(capture) not in ("", board(records.time))
    ]
    return agreement(rest, hot, *profilers_us, kernels, next(iter(traced), None), elsewhere, other_us)


def _other_pass(rows: Sequence[MetricRow], case: str) -> float | None:
    """Returns the time of another of ncu's passes over a case's only kernel; None if it cannot be told."""
    needed = ("duration_us", "gpu_cycles", "sm_mhz_in_ncu")
    durations = [_duration(rows, case, name, "ncu") for name in needed]
    values = [value for value, kernels in durations if kernels == 1 and value]
    return other_pass(*values) if len(values) == len(needed) else None


def _duration(rows: Sequence[MetricRow], case: str, metric: str, tool: str) -> tuple[float | None, int]:
    """Returns the sum of the durations of a case's kernels (None if any is missing), and their number."""
    values = [row.value for row in rows if row.metric == metric and row.case == case and row.tool == tool]
    present = [value for value in values if value is not None]
    return (sum(present) if values and len(present) == len(values) else None), len(values)


def _built(build: Build | Absent) -> Iterator[tuple[str, Row]]:
    """Yields table and row of each fact about the kernels of a build."""
    if isinstance(build, Build):
        for kernel in build.kernels:
            yield from (("metrics", {**row, "origin": build.origin}) for row in _facts(kernel, build.tools))


def _facts(kernel: KernelCode, tools: Versions) -> Iterator[Row]:
    common: Row = {"case": "", "kernel": kernel.kernel, "launch": 0, "status": "ok", "reason": ""}
    # Otherwise the kernel was compiled elsewhere, or by a Python package.
    from_log = "nvcc" in tools and kernel.spill_store_bytes is not None
    by_ptxas: Row = {"tool": "ptxas", "tool_version": tools.get("nvcc", "")}
    reader: Row = {"tool": "cuobjdump", "tool_version": tools.get("cuobjdump", "")}
    for name in _RESOURCES:
        amount: int | None = getattr(kernel, name)
        if amount is not None:
            unit = "B" if name.endswith("_bytes") else "registers"
            by = by_ptxas if from_log else reader
            yield {**common, "metric": name, "value": amount, "unit": unit, **by}
    counts = {"sass_instructions": kernel.sass_instructions}
    counts |= {f"sass_{opcode}": count for opcode, count in kernel.opcodes.items()}
    for name, count in counts.items():
        yield {**common, "metric": name, "value": count, "unit": "instructions", **reader}


def _captured(variant: Variant, records: VariantRecords) -> Iterator[tuple[str, Row]]:
    """Yields table and row of everything that the profilers' reports of a variant contain."""
    extract = records.extract
    if isinstance(extract, Absent):
        return
    ncu, nsys = (board(records.captures[tool]) for tool in ("ncu", "nsys"))
    for row in extract.rows:
        yield "metrics", {**structs.asdict(row), "board": ncu if row.tool == "ncu" else nsys}
    for line in extract.lines:
        yield "lines", {**structs.asdict(line), "board": ncu}
    for instruction in _instructions(extract.loops or ()):
        yield "instructions", {**instruction, "board": ncu}
    for event in extract.trace:
        yield "timeline", {**structs.asdict(event), "board": nsys}
    if variant.library:
        yield from (
            ("library_kernels", {**kernel, "board": nsys or ncu}) for kernel in library_kernels(extract)
        )


def _instructions(loops: Sequence[HotLoop]) -> Iterator[Row]:
    """Yields the rows of the loops, which are numbered case by case."""
    numbers: Counter[str] = Counter()
    for loop in loops:
        key: Row = {
            "case": loop.case,
            "kernel": loop.kernel,
            "launch": loop.launch,
            "loop": numbers[loop.case],
            "iterates": loop.iterates,
            "iterations": loop.iterations,
        }
        numbers[loop.case] += 1
        for place, instruction in enumerate(loop.instructions):
            share = instruction.samples / loop.kernel_samples if loop.kernel_samples else None
            opcode = parse(instruction.text).opcode
            row: Row = {"place": place, "opcode": opcode, "sample_share": share}
            yield {**key, **row, **structs.asdict(instruction)}


def _variant(
    family: Family, variant: Variant, ladder: Sequence[Variant], records: VariantRecords, sms: int
) -> Row:
    headline = family.cases[family.headline_case]
    status, reason = records.verdict()
    build = None if isinstance(records.build, Absent) else records.build
    extract = None if isinstance(records.extract, Absent) else records.extract
    return {
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
        "flops": family.amount(family.work.flops, headline, sms),
        "bytes": family.amount(family.work.bytes, headline, sms),
        "parameters": json.dumps(dict(variant.parameters)),
        "compile": variant.compile.text(),
        "status": status,
        "reason": reason,
        "remarks": remarks.cell(variant.remarks),
        **launched_columns(family, build.kernels if build else (), extract),
        "build_origin": build.origin if build else "",
        "source_sha256": variant.fingerprint(),
    }


def sustained_columns(timed: TimeCase, flops: float, is_captured: bool = True) -> Row:
    """Returns the columns on back-to-back launches.

    If no limit lowers the clock, the sustained time is the hot time; power and energy are then unknown, since the hot
    run is too short for the board's readings.

    Args:
        is_captured: whether the profilers capture the case. Only then is the hot run long enough to show a limit, and
            each variant that reaches one measured sustained; the hot time of another case is no sustained time.
    """
    rest_mhz = timed.cold.set_mhz if timed.cold else None
    limits: Sequence[str] = ()
    if run := timed.sustained:
        us, mhz, power_w, limits = run.mean_us, run.sm_mhz, run.power_w, run.limits
    elif is_captured and timed.hot:
        us, mhz, power_w = timed.hot.median_us, rest_mhz, None
    else:
        return {}
    means = [sustained.mean_us for sustained in timed.sustained_runs]
    energy_j = power_w * us * 1e-6 if power_w else None
    return {
        "sustained_us": us,
        "sustained_sm_mhz": mhz,
        "sustained_power_w": power_w,
        "sustained_process_spread": max(means) / min(means) - 1 if len(means) > 1 else None,
        "limited_by": _limit(limits, mhz, rest_mhz),
        "sustained_gflops": flops / us * 1e-3 if flops else None,
        "energy_j": energy_j,
        "gflop_per_j": flops * 1e-9 / energy_j if energy_j and flops else None,
        "pj_per_flop": energy_j * 1e12 / flops if energy_j and flops else None,
        "tflops_per_ghz": flops / us * 1e-3 / mhz if mhz and power_w and flops else None,
    }


def _limit(reasons: Sequence[str], mhz: float | None, rest_mhz: float | None) -> str:
    """Returns the kind of limit that lowered the clock: power, temperature, other, or "" for none."""
    if rest_mhz and mhz and mhz >= _FULL_CLOCK * rest_mhz:
        return ""
    if not reasons:
        return "other" if rest_mhz and mhz else ""
    if "sw_power_cap" in reasons or "hw_power_brake_slowdown" in reasons:
        return "power"
    return "temperature" if any("thermal" in reason for reason in reasons) else "other"


def _traces(family: Family, cases: Sequence[str], time: Time | Absent, sms: int) -> Iterator[tuple[str, Row]]:
    for timed in () if isinstance(time, Absent) else time.cases:
        if timed.case in cases:
            flops = family.amount(family.work.flops, family.cases[timed.case], sms)
            key: Row = {"case": timed.case, "board": board(time)}
            yield from (("power_trace", {**key, **row}) for row in power_trace_rows(timed, flops))


def power_trace_rows(timed: TimeCase, flops: float) -> Iterator[Row]:
    """Yields rows of the table `power_trace`: the GPU's readings over time, with the rate of the launches then."""
    run = timed.sustained
    if run is None or run.trace is None:
        return
    samples_us = np.asarray(run.samples_us)
    launches = timed.sustained_runs[0].launches / samples_us.size  # per batch
    ends_s = np.cumsum(samples_us) * launches * 1e-6
    readings = structs.asdict(run.trace)
    for i, time_s in enumerate(run.trace.time_s):
        here = min(int(np.searchsorted(ends_s, time_s)), samples_us.size - 1)
        yield {
            **{name: values[i] for name, values in readings.items()},
            "gflops": flops / float(samples_us[here]) * 1e-3 if flops else None,
        }
