"""Column dictionary of every table: type, unit and meaning; written to columns.csv beside the tables."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

Cell = str | int | float | bool | None
Row = Mapping[str, Cell]  # of a table, by column


def number(row: Row, column: str) -> float:
    """Returns a number of a row; NaN if the column is missing, empty or not a number."""
    cell = row.get(column)
    return float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else math.nan


def text(row: Row, column: str) -> str:
    """Returns what a row has in a column, as text; "" if the column is missing or empty."""
    cell = row.get(column)
    return "" if cell is None or (isinstance(cell, float) and math.isnan(cell)) else str(cell)


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        kind: str, int, float or bool.
        unit: '' for names, counts and ratios.
    """

    kind: str
    unit: str
    meaning: str


KEY: Mapping[str, Column] = {
    "family": Column("str", "", "kernel family"),
    "variant": Column("str", "", "variant of the family"),
    "case": Column("str", "", "problem case; empty if the value applies to all cases"),
}
ORIGIN: Mapping[str, Column] = {
    "gpu": Column("str", "", "slug of the GPU, such as rtx-4090"),
    "gpu_name": Column("str", "", "GPU name as reported by the driver"),
    "origin": Column("str", "", "live: measured on this machine; recorded: read from a recorded campaign"),
    "campaign": Column("str", "", "name of the campaign"),
}
BOARD: Mapping[str, Column] = {
    "board": Column("str", "", "UUID of the GPU that the row was measured on; empty if it was not measured"),
}
STATUS: Mapping[str, Column] = {
    "status": Column("str", "", "ok, or the kind of failure (compile_error, wrong, crashed, timeout, …)"),
    "reason": Column("str", "", "why the status is not ok"),
}
REMARKS: Mapping[str, Column] = {
    "remarks": Column(
        "str",
        "",
        "what to know of the row, as a JSON list of codes with values; empty for nothing. Codes: few_samples,"
        " discarded, held_clock, not_blocked, host_time, no_graph, not_reported, earlier_source, other_board,"
        " not_tuned, violated, partly_tuned, tuned_for_earlier",
    ),
}


MEASUREMENTS: Mapping[str, Column] = {
    **KEY,
    "size": Column("int", "", "problem size by the family's size formula, used as the x axis"),
    **STATUS,
    **REMARKS,
    "own_limits": Column(
        "str",
        "",
        "upper limits that the variant sets itself and the case exceeds, by parameter, as JSON; empty if anything else"
        " keeps it from the case",
    ),
    "median_us": Column(
        "float",
        "us",
        "time per launch at rest, the median of the process medians: cold launches (L2 holds unrelated, unmodified"
        " lines) with pauses, so that no power or thermal limit acts; empty interval subtracted",
    ),
    "q1_us": Column("float", "us", "first quartile of the time at rest, over the samples of all processes"),
    "q3_us": Column("float", "us", "third quartile of the time at rest, over the samples of all processes"),
    "min_us": Column("float", "us", "minimum time at rest"),
    "max_us": Column("float", "us", "maximum time at rest"),
    "mean_us": Column("float", "us", "mean time at rest"),
    "samples": Column("int", "", "number of samples at rest, over all processes"),
    "rel_spread": Column(
        "float", "", "robust relative spread of the time at rest: (q3 - q1) / (1.349 median)"
    ),
    "processes": Column("int", "", "number of processes that measured the case"),
    "process_spread": Column(
        "float",
        "",
        "largest over smallest process median at rest, minus 1; empty for one process",
    ),
    "process_min_us": Column("float", "us", "smallest process median at rest"),
    "process_max_us": Column("float", "us", "largest process median at rest"),
    "discarded": Column(
        "int", "", "launches discarded since a limit held the SM clock below 99 % of its maximum"
    ),
    "hot_us": Column(
        "float",
        "us",
        "median hot time at rest: time per launch in a CUDA graph of back-to-back launches, short enough that no"
        " limit acts; empty for cases that time.hot_cases excludes",
    ),
    "hot_rel_spread": Column("float", "", "robust relative spread of the hot time"),
    "first_launch_us": Column(
        "float",
        "us",
        "host time from the case's first launch until it has completed; of a Python variant, with compiling and tuning",
    ),
    "launch_host_us": Column(
        "float",
        "us",
        "median host time of a launch until its work is queued; not part of the times at rest; of a Python variant, the"
        " time of its function `launch`",
    ),
    "empty_us": Column("float", "us", "duration of an empty interval, subtracted from every cold sample"),
    "sm_mhz": Column(
        "float",
        "MHz",
        "median over the samples at rest of the mean SM clock during the kernel; under load it is below the clock that"
        " is set, since the clock generator skips cycles while the voltage drops",
    ),
    "set_mhz": Column("float", "MHz", "median of the SM clock that was set just before each launch at rest"),
    "power_w": Column("float", "W", "median board power while the case was timed at rest"),
    "temperature_c": Column("float", "degC", "highest GPU temperature while the case was timed at rest"),
    "throttle_reasons": Column(
        "str", "", "throttle reasons that the driver reported while the case was timed at rest"
    ),
    "sustained_us": Column(
        "float",
        "us",
        "mean time per launch, back to back, at the board's power limit if that lowers the clock, as the median over"
        " processes; the hot time if no limit lowers the clock of a captured case; empty if neither is known",
    ),
    "sustained_process_spread": Column(
        "float", "", "largest over smallest sustained time of the processes, minus 1; empty for one process"
    ),
    "sustained_sm_mhz": Column("float", "MHz", "mean of the SM clock that was set while sustained"),
    "sustained_power_w": Column(
        "float", "W", "board power that sustained_us refers to: the power limit if it acts, else the mean"
    ),
    "limited_by": Column(
        "str",
        "",
        "what lowers the clock of back-to-back launches: power, temperature or other; empty for nothing",
    ),
    "sustained_gflops": Column("float", "GFLOP/s", "the algorithm's FLOPs divided by sustained_us"),
    "energy_j": Column("float", "J", "board energy per launch while sustained"),
    "gflop_per_j": Column("float", "GFLOP/J", "the algorithm's FLOPs divided by energy_j"),
    "pj_per_flop": Column("float", "pJ/FLOP", "energy_j divided by the algorithm's FLOPs"),
    "tflops_per_ghz": Column("float", "TFLOP/s/GHz", "sustained_gflops divided by sustained_sm_mhz"),
    "gflops": Column("float", "GFLOP/s", "the algorithm's FLOPs divided by the time at rest"),
    "gbytes_per_s": Column("float", "GB/s", "compulsory traffic divided by the time at rest"),
    "ratio_to_baseline": Column(
        "float", "", "baseline's time at rest divided by this one: above 1 is faster"
    ),
    "ratio_q1": Column(
        "float", "", "baseline's time at rest divided by the largest process median (slower end)"
    ),
    "ratio_q3": Column(
        "float", "", "baseline's time at rest divided by the smallest process median (faster end)"
    ),
    "sustained_ratio_to_baseline": Column(
        "float", "", "baseline's sustained time divided by this one: above 1 is faster"
    ),
    "baseline": Column("str", "", "variant that the ratios refer to"),
    "max_error_over_tolerance": Column("float", "", "largest error in the check divided by the tolerance"),
    "max_error_over_scale": Column(
        "float",
        "",
        "largest error of the case's results after timing, divided by the scale that reference.py returns; empty for"
        " records of earlier releases",
    ),
    "ncu_us": Column(
        "float", "us", "ncu's gpu__time_duration with flushed caches, summed over the launch's kernels"
    ),
    "nsys_us": Column(
        "float", "us", "median nsys duration in back-to-back launches, summed over the launch's kernels"
    ),
    "agreement": Column(
        "str",
        "",
        "ok if the time at rest matches ncu and the hot time matches nsys within 3 % + 1 us per kernel, else disagree;"
        " empty if there is nothing to compare: no capture, or times that include host work",
    ),
    "agreement_notes": Column(
        "str",
        "",
        "the times that differ, and what is not compared or varies, as a JSON list of codes with values: differ,"
        " other_board, several_kernels, varies_in_ncu, tracing_slows",
    ),
    **ORIGIN,
    **BOARD,
    "measured_at": Column("str", "", "end of the timing job, ISO 8601 UTC"),
    "commit": Column("str", "", "Git commit of the code that measured; empty if unknown"),
    "clocks": Column("str", "", "unlocked, or the frequency that the clocks were locked to"),
    "source_sha256": Column("str", "", "SHA-256 fingerprint of the source, its headers and its parameters"),
}
METRICS: Mapping[str, Column] = {
    **KEY,
    "kernel": Column("str", "", "kernel name; empty if the value applies to the whole launch"),
    "launch": Column("int", "", "index of the kernel within the case, from 0"),
    "metric": Column("str", "", "metric name in the registry"),
    "value": Column("float", "", "value in `unit`; empty if status is not ok"),
    "unit": Column("str", "", "unit of the value"),
    **STATUS,
    "tool": Column("str", "", "ptxas, cuobjdump, ncu or nsys"),
    "tool_version": Column("str", "", "version of the tool"),
    **ORIGIN,
    **BOARD,
}
TIMELINE: Mapping[str, Column] = {
    **KEY,
    "name": Column("str", "", "name of the kernel, copy or API call"),
    "kind": Column("str", "", "kernel, memcpy, memset or api"),
    "stream": Column("int", "", "CUDA stream"),
    "start_us": Column("float", "us", "start time since the first event of the capture"),
    "duration_us": Column("float", "us", "duration"),
    "launch": Column("int", "", "index of the launch within the case, from 0; empty if unknown"),
    **ORIGIN,
    **BOARD,
}
POWER_TRACE: Mapping[str, Column] = {
    **KEY,
    "time_s": Column("float", "s", "time since the start of the sustained measurement"),
    "sm_mhz": Column("float", "MHz", "SM clock at that time"),
    "power_w": Column("float", "W", "board power at that time"),
    "temperature_c": Column("float", "degC", "GPU temperature at that time"),
    "energy_j": Column("float", "J", "reading of the board's energy counter at that time"),
    "throttle_reasons": Column("str", "", "throttle reasons at that time"),
    "gflops": Column("float", "GFLOP/s", "the algorithm's FLOPs divided by the time per launch at that time"),
    **ORIGIN,
    **BOARD,
}
LINES: Mapping[str, Column] = {
    **KEY,
    "kernel": Column("str", "", "kernel name"),
    "launch": Column("int", "", "index of the kernel within the case, from 0"),
    "file": Column("str", "", "source file"),
    "line": Column("int", "", "line number in the source file"),
    "text": Column("str", "", "source text of the line; empty for files that do not belong to the variant"),
    "samples": Column("float", "", "warp samples at this line; 0 if ncu took no samples"),
    "sample_share": Column("float", "", "share of the launch's warp samples"),
    "instructions": Column("float", "inst", "warp-level instructions executed at this line"),
    "instruction_share": Column("float", "", "share of the launch's instructions"),
    "shared_wavefronts_excess": Column("float", "", "shared-memory wavefronts beyond the ideal number"),
    "stall": Column("str", "", "most frequent stall reason at this line"),
    "stall_samples": Column("float", "", "warp samples with that stall reason"),
    **ORIGIN,
    **BOARD,
}
INSTRUCTIONS: Mapping[str, Column] = {
    **KEY,
    "kernel": LINES["kernel"],
    "launch": LINES["launch"],
    "loop": Column("int", "", "hot loop of the case's longest kernel, from 0, by its samples"),
    "iterates": Column(
        "bool", "", "false for the code outside of all loops, which is listed if no loop has more samples"
    ),
    "iterations": Column(
        "int", "", "how often warps began an iteration, or the kernel if it does not iterate"
    ),
    "place": Column(
        "int", "", "position in the loop by address, from 0; loops within the loop are not part of it"
    ),
    "offset": Column("int", "B", "address from the kernel's first instruction"),
    "opcode": Column("str", "", "opcode with modifiers, without predicate"),
    "text": Column("str", "", "the instruction; targets of branches are offsets"),
    "executed": Column("int", "inst", "how often warps executed it"),
    "samples": Column("int", "", "warp samples at it; 0 if ncu took no samples"),
    "sample_share": Column("float", "", "share of the kernel's warp samples; empty without samples"),
    "stall": Column("str", "", "most frequent stall reason at it"),
    "stall_samples": Column("int", "", "warp samples with that stall reason"),
    "file": Column("str", "", "source file; empty if unknown"),
    "line": Column("int", "", "line number in the source file; 0 if unknown"),
    **ORIGIN,
    **BOARD,
}
LIBRARY_KERNELS: Mapping[str, Column] = {
    **KEY,
    "order": Column("int", "", "position within a launch of the variant, from 0"),
    "kind": Column("str", "", "kernel, memcpy or memset"),
    "kernel": METRICS["kernel"],
    "short_name": Column("str", "", "kernel name without namespaces, types and common parts"),
    "is_split_k": Column(
        "bool", "", "whether the name marks a split-K kernel or the reduction of its partial sums"
    ),
    "grid": Column("str", "", "grid dimensions in blocks as XxYxZ (nsys); empty without a capture"),
    "grid_blocks": Column("int", "", "number of blocks in the grid (nsys, else ncu)"),
    "block": Column("str", "", "block dimensions in threads as XxYxZ (nsys); empty without a capture"),
    "block_threads": Column("int", "", "threads per block (nsys, else ncu)"),
    "registers_per_thread": Column("int", "", "registers per thread (nsys, else ncu)"),
    "shared_bytes": Column("int", "B", "static and dynamic shared memory per block (nsys)"),
    "ncu_shared_bytes": Column("int", "B", "shared memory per block including the driver's share (ncu)"),
    "nsys_us": Column(
        "float", "us", "median time in back-to-back launches; a kernel that runs twice counts twice"
    ),
    "ncu_us": Column("float", "us", "ncu's gpu__time_duration with flushed caches"),
    "share_pct": Column("float", "%", "share of the launch's time (nsys)"),
    **ORIGIN,
    **BOARD,
}
VARIANTS: Mapping[str, Column] = {
    "family": KEY["family"],
    "variant": KEY["variant"],
    "language": Column("str", "", "language of the source: cuda, triton, cupy or torch"),
    "order": Column("int", "", "position in the ladder, from 0"),
    "rungs": Column("int", "", "number of variants in the ladder; drafts count only if one of them is shown"),
    "parent": Column("str", "", "variant that this one is based on"),
    "idea": Column("str", "", "idea of the variant in one sentence"),
    "note": Column("str", "", "what a ratio to its time must say"),
    "credit": Column("str", "", "publication of the idea"),
    "expected": Column("str", "", "what the header of its source expected before it was measured"),
    "is_baseline": Column("bool", "", "whether ratios refer to this variant"),
    "headline_case": Column("str", "", "case that single-number summaries quote"),
    "profile_cases": Column("str", "", "profiled cases, comma-separated"),
    "size_label": Column("str", "", "label of the x axis"),
    "title": Column("str", "", "title of the family"),
    "limit": Column("str", "", "link that limits the traffic: dram, or pcie for host-device transfers"),
    "flops": Column("float", "FLOP", "the algorithm's FLOPs in the headline case"),
    "bytes": Column("float", "B", "compulsory traffic in the headline case"),
    "parameters": Column("str", "", "compile-time parameters such as tile sizes, as JSON"),
    "compile": Column("str", "", "options of the compiler, further sources and libraries (key `compile`)"),
    **STATUS,
    **REMARKS,
    "kernel": Column(
        "str",
        "",
        "kernel that was launched, of several the longest; if not captured, the one with most instructions",
    ),
    "registers_per_thread": Column("int", "", "registers per thread of that kernel (ptxas)"),
    "static_shared_bytes": Column("int", "B", "static shared memory per block of that kernel (ptxas)"),
    "spill_bytes": Column("int", "B", "spill stores and loads of that kernel (ptxas); empty if unknown"),
    "build_origin": Column(
        "str", "", "live: compiled on this machine; recorded: build record of the campaign"
    ),
    "source_sha256": MEASUREMENTS["source_sha256"],
    **ORIGIN,
}
GPUS: Mapping[str, Column] = {
    "gpu": ORIGIN["gpu"],
    "gpu_name": ORIGIN["gpu_name"],
    "arch": Column("str", "", "architecture that nvcc compiles for, such as sm_90"),
    "sms": Column("int", "", "streaming multiprocessors"),
    "fp32_tflops_peak": Column("float", "TFLOP/s", "peak FP32 rate without tensor cores"),
    "fp32_peak_mhz": Column("float", "MHz", "SM clock at which the FP32 peak holds"),
    "tf32_tflops_peak": Column("float", "TFLOP/s", "peak dense TF32 rate of the tensor cores"),
    "bf16_tflops_peak": Column("float", "TFLOP/s", "peak dense bfloat16 rate of the tensor cores"),
    "fp8_tflops_peak": Column("float", "TFLOP/s", "peak dense FP8 rate of the tensor cores"),
    "tensor_peak_mhz": Column("float", "MHz", "SM clock at which the peaks of the tensor cores hold"),
    "dram_gbytes_per_s_peak": Column("float", "GB/s", "peak device-memory bandwidth"),
    "pcie_gbytes_per_s_peak": Column("float", "GB/s", "peak host-device bandwidth in one direction"),
    "l2_mib": Column("float", "MiB", "L2 cache size"),
    "memory_gib": Column("float", "GiB", "device memory"),
    "max_sm_mhz": Column("float", "MHz", "maximum SM clock"),
    "source": Column("str", "", "source of the peaks"),
    "origins": Column(
        "str",
        "",
        "how the peaks were found: data_sheet, device (computed from its clocks and widths), measured",
    ),
}
SANITIZE: Mapping[str, Column] = {
    "family": KEY["family"],
    "variant": KEY["variant"],
    "tool": Column("str", "", "memcheck, racecheck, initcheck or synccheck"),
    "status": Column("str", "", "ok, finding, or the kind of failure if the tool has no result"),
    "reason": Column("str", "", "first finding, or why the tool has no result"),
    "kind": Column("str", "", "invalid_read, invalid_write, race, uninitialized_read, barrier, ..."),
    "message": Column("str", "", "message of the tool, without addresses"),
    "kernel": Column("str", "", "kernel name without its arguments"),
    "file": Column("str", "", "source file"),
    "line": Column("int", "", "line number in the source file"),
    "count": Column("int", "", "number of times that the tool reported it"),
    "cases": Column("int", "", "number of check cases that ran under the tool"),
    "seconds": Column("float", "s", "wall time of the tool"),
    **ORIGIN,
    "source_sha256": MEASUREMENTS["source_sha256"],
}
# Columns of results/tune/<gpu>/<family>/<variant>.csv; one column per searched parameter follows them.
# A search times every setting in a short first pass (`look` in its record), then the best ones in the final.
TUNE: Mapping[str, Column] = {
    "family": Column("str", "", "kernel family"),
    "variant": Column("str", "", "tuned variant"),
    "gpu": Column("str", "", "slug of the GPU, such as rtx-4090"),
    "setting": Column("str", "", "name of the setting; its parameters are the columns after these"),
    "rank": Column("int", "", "rank among the settings with a time, from 1; rank 1 took part in the final"),
    "is_default": Column("bool", "", "whether it is the setting in family.yaml"),
    "status": Column("str", "", "ok, or the kind of failure; skipped if the time limit was reached first"),
    "reason": Column("str", "", "why the status is not ok"),
    "case": Column("str", "", "timed case; one row per case that enters the score"),
    "score_us": Column(
        "float",
        "us",
        "geometric mean of the median cold times over the cases; from the final if it took part",
    ),
    "median_us": Column("float", "us", "median cold time in the first pass"),
    "q1_us": Column("float", "us", "first quartile of the cold time in the first pass"),
    "q3_us": Column("float", "us", "third quartile of the cold time in the first pass"),
    "rel_spread": Column("float", "", "robust relative spread in the first pass: (q3 - q1) / (1.349 median)"),
    "samples": Column("int", "", "number of cold samples in the first pass"),
    "hot_us": Column(
        "float", "us", "median hot time (CUDA graph of back-to-back launches) in the first pass"
    ),
    "final_us": Column("float", "us", "median over the rounds of the final of the median cold time"),
    "gflops": Column(
        "float", "GFLOP/s", "the algorithm's FLOPs divided by final_us, or by median_us without a final"
    ),
    "registers_per_thread": Column(
        "int", "", "largest number of registers per thread among its kernels (ptxas)"
    ),
    "spill_bytes": Column("int", "B", "spill stores and loads, summed over its kernels (ptxas)"),
    "block_threads": Column("int", "", "threads per block"),
    "shared_bytes": Column("int", "B", "static and dynamic shared memory per block"),
    "theoretical_occupancy_pct": Column(
        "float", "%", "theoretical occupancy of the kernel with the most registers per thread"
    ),
}
TRACKS: Mapping[str, Column] = {
    **KEY,
    "sm": Column("int", "", "number of the SM: the one whose share of waiting is the median over the SMs"),
    "slot": Column("int", "", "place of the block on the SM, from 0; blocks in one slot follow each other"),
    "block": Column("int", "", "number of the block in the grid"),
    "warp": Column("int", "", "number of the warp in its block"),
    "role": Column("str", "", "producer, consumer, look-back or worker"),
    "region": Column("str", "", "what the warp does: load, wait, compute, store, handover, lookback or sync"),
    "start_us": Column("float", "us", "start since the first warp of the launch started"),
    "duration_us": Column("float", "us", "duration"),
    "start_clocks": Column("int", "clocks", "start since the first warp on this SM started"),
    "duration_clocks": Column("int", "clocks", "duration"),
    **ORIGIN,
}
LAUNCHES: Mapping[str, Column] = {
    **KEY,
    **STATUS,
    **REMARKS,
    "sms": Column("int", "", "SMs on which a marked warp ran"),
    "blocks": Column("int", "", "blocks of the launch"),
    "warps": Column("int", "", "warps with events on all SMs"),
    "events": Column("int", "", "events on all SMs"),
    "lost_events": Column("int", "", "events for which the buffer had no room"),
    "lost_warps": Column("int", "", "warps for which the buffer had no room"),
    "sm_mhz": Column("float", "MHz", "clocks of the SM per microsecond during the launch"),
    "step_ns": Column("int", "ns", "step of the timer that aligns the SMs"),
    "span_us": Column("float", "us", "from the start of the first warp to the end of the last one"),
    "plain_us": Column("float", "us", "time at rest without marks"),
    "marked_us": Column("float", "us", "time at rest with marks"),
    "overhead_pct": Column("float", "%", "by how much the marks lengthen the time at rest"),
    "noise_pct": Column("float", "%", "difference between two such times of the build without marks"),
    "sm": TRACKS["sm"],
    "region_us": Column("float", "us", "mean length of a region on the SM"),
    "lead_steps": Column(
        "float",
        "",
        "median over the steps of a consumer of the further steps whose loads the producer has requested when the"
        " consumer begins to compute; empty without a producer",
    ),
    "lead_pct": Column("float", "%", "share of the steps with at least one further step requested"),
    "producer_wait_pct": Column(
        "float", "%", "share of the producers' time in which they wait for a free stage"
    ),
    "compute_pct": Column(
        "float", "%", "share of the consumers' time in which they compute; of all warps without a producer"
    ),
    "wait_pct": Column("float", "%", "share of the consumers' time in which they wait for data"),
    "sync_pct": Column(
        "float", "%", "share of the consumers' time in which they wait for other warps of the block"
    ),
    "store_pct": Column("float", "%", "share of the consumers' time in which they store results"),
    "handover_pct": Column("float", "%", "share of the consumers' time in which they hand over partial sums"),
    "lookback_pct": Column(
        "float", "%", "share of the workers' time in which they wait for the sums of earlier tiles"
    ),
    "lookback_us": Column("float", "us", "median wait for the sums of earlier tiles"),
    "bubbles": Column(
        "int", "", "bubbles: the longest time at each tile end in which no warp of the SM computes"
    ),
    "bubble_us": Column("float", "us", "median length of a bubble"),
    "bubble_pct": Column(
        "float", "%", "share of the bubbles in the time from the first to the last computation"
    ),
    "starved_pct": Column("float", "%", "share of that time in which no warp computes, stores or hands over"),
    "wait_pct_min": Column(
        "float", "%", "smallest share of waiting in the time of all warps of an SM, over the SMs"
    ),
    "wait_pct_max": Column(
        "float", "%", "largest share of waiting in the time of all warps of an SM, over the SMs"
    ),
    **ORIGIN,
    "source_sha256": MEASUREMENTS["source_sha256"],
}
PUBLISHED: Mapping[str, Column] = {
    **KEY,
    "size": MEASUREMENTS["size"],
    **STATUS,
    **REMARKS,
    "value": Column("float", "", "measured rate in `unit`, from the median cold time"),
    "unit": Column("str", "", "unit of `value` and `published`"),
    "ratio_to_baseline": MEASUREMENTS["ratio_to_baseline"],
    "published": Column("float", "", "published rate for this variant in `unit`"),
    "published_case": Column(
        "str", "", "case of the published rate; empty if the source names none (listed at the headline case)"
    ),
    "published_gpu": Column("str", "", "GPU of the published rate"),
    "published_source": Column("str", "", "author and title of the publication"),
    "published_ratio": Column(
        "float", "", "published rate divided by the same source's rate for the baseline (same GPU and case)"
    ),
    **ORIGIN,
}
STAGES: Mapping[str, Column] = {
    "family": KEY["family"],
    "variant": KEY["variant"],
    "stage": Column("str", "", "build, check, time, ncu or nsys"),
    "status": Column("str", "", "status of the stage's record"),
    "cases": Column("int", "", "number of cases that ran; empty for a build"),
    "seconds": Column("float", "s", "wall time of the compiler, or of the cases while the GPU is locked"),
    "start_seconds": Column(
        "float",
        "s",
        "the variant's share of starting and ending the worker process that serves all variants, while the"
        " GPU is locked; empty if unknown",
    ),
    "board": Column("str", "", "UUID of the GPU that ran the stage; empty for a build"),
    "commit": Column("str", "", "commit that measured; empty for a build"),
    "finished": Column("str", "", "end of the job, ISO 8601 UTC; empty for a build"),
    **ORIGIN,
}


TABLES: Mapping[str, Mapping[str, Column]] = {
    "measurements": MEASUREMENTS,
    "metrics": METRICS,
    "timeline": TIMELINE,
    "lines": LINES,
    "instructions": INSTRUCTIONS,
    "library_kernels": LIBRARY_KERNELS,
    "variants": VARIANTS,
    "gpus": GPUS,
    "published": PUBLISHED,
    "power_trace": POWER_TRACE,
    "stages": STAGES,
    "launches": LAUNCHES,
    "tracks": TRACKS,
}
PARQUET_ONLY = ("instructions",)  # as CSV it would be larger than all other tables


ACCESS_LANES: Mapping[str, Column] = {
    **KEY,
    "launch": Column("int", "", "index of the kernel in the launch of the variant"),
    "offset": Column("int", "B", "place of the instruction from the start of its kernel"),
    "opcode": Column("str", "", "instruction as it is disassembled; empty if it is unknown"),
    "file": Column("str", "", "source file; empty without a line table"),
    "line": Column("int", "", "line of the source; 0 without a line table"),
    "text": Column("str", "", "the source line"),
    "space": Column("str", "", "global, shared or local"),
    "kind": Column("str", "", "load, store, atomic, async_copy, ldmatrix or stmatrix"),
    "array": Column("str", "", "argument that the addresses belong to; empty for none or several"),
    "requests": Column(
        "int", "", "executions by a warp, of the instructions of the line that take as much per request"
    ),
    "sectors": Column("int", "", "distinct sectors of 32 bytes per request, summed over the requests"),
    "sectors_ideal": Column("int", "", "fewest sectors that hold the distinct bytes of each request, summed"),
    "wavefronts": Column("int", "", "wavefronts of shared memory, summed over the requests"),
    "wavefronts_ideal": Column("int", "", "wavefronts without bank conflicts, summed"),
    "ways": Column("int", "", "largest number of words of one bank in one pass of a request"),
    "block": Column("int", "", "block of the request that is the example of the instruction"),
    "warp": Column("int", "", "its warp in the block"),
    "size_bytes": Column("int", "B", "bytes per lane"),
    "lane": Column("int", "", "lane of the warp, from 0"),
    "address": Column("int", "B", "from the start of the array, or of the shared memory of the block"),
    **ORIGIN,
}
ACCESS_OWNERS: Mapping[str, Column] = {
    **KEY,
    "array": Column("str", "", "output of two dimensions"),
    "block": Column("int", "", "block that writes the tile"),
    "thread": Column("int", "", "thread that writes the elements, as index in its block"),
    "row": Column("int", "", "row of the elements in the array"),
    "column": Column("int", "", "column of the first of them"),
    "elements": Column("int", "", "how many elements beside each other the thread writes"),
    **ORIGIN,
}
ACCESS_TILES: Mapping[str, Column] = {
    **KEY,
    "array": Column("str", "", "output of two dimensions"),
    "rows": Column("int", "", "rows of the array"),
    "columns": Column("int", "", "columns of the array"),
    "block": Column("int", "", "block that writes the tile"),
    "first_row": Column("int", "", "first row of the tile"),
    "end_row": Column("int", "", "row after its last one"),
    "first_column": Column("int", "", "first column of the tile"),
    "end_column": Column("int", "", "column after its last one"),
    **ORIGIN,
}
CLAIMS: Mapping[str, Column] = {
    "family": KEY["family"],
    "id": Column("str", "", "identifier of the claim within the family"),
    "claim": Column("str", "", "assertion in one sentence"),
    "source": Column("str", "", "publication that makes the claim"),
    "published": Column("str", "", "published number"),
    "verdict": Column(
        "str",
        "",
        "confirmed, refuted, within_noise (the bound lies within floor or spread of the times) or not_measurable",
    ),
    "margin": Column("str", "", "exceeded: confirmed with at least 1.5 times the bound"),
    "measured": Column("float", "", "value of `measure` in `unit`; empty if not measurable"),
    "unit": Column("str", "", "unit of `measured`; empty for ratios and counts"),
    "condition": Column("str", "", "condition on `measured` under which the claim is confirmed"),
    "measure": Column("str", "", "formula over measurements and metrics of variants"),
    "kernels": Column(
        "str", "", "which variant stands for which kernel of the publication, where the names differ"
    ),
    "case": Column("str", "", "case that the formula refers to unless it names another"),
    "cases": Column("str", "", "cases of the numbers behind the verdict, comma-separated"),
    "evidence": Column("str", "", "values of the terms in the formula"),
    "about": Column(
        "str",
        "",
        "other GPU or machine that the published number is of, if the claim is therefore not judged",
    ),
    "reason": Column("str", "", "why the claim is not measurable; else notes on the rows behind the verdict"),
    **ORIGIN,
}
FLOORS: Mapping[str, Column] = {
    **KEY,
    "regime": Column(
        "str",
        "",
        "rest: cold launches with pauses, so that no limit lowers the clock; sustained: back to back, until one does",
    ),
    "processes": Column("int", "", "number of processes in which the case was measured"),
    "floor": Column(
        "float",
        "",
        "smallest relative gap that counts between two campaigns, each with the median of that many processes:"
        " the same code exceeds it with p = 0.002; empty if nothing ran in two processes",
    ),
    "deviation": Column(
        "float", "", "standard deviation of the logarithm of the time between runs of the same code"
    ),
    "freedom": Column("float", "", "degrees of freedom of `deviation`; empty if it is known exactly"),
    "groups": Column(
        "float", "", "range of the logarithms of the processes' times if these form two groups, else 0"
    ),
    **ORIGIN,
}
ORACLE: Mapping[str, Column] = {
    "probe": Column("str", "", "known property of the kernel"),
    **KEY,
    "quantity": Column(
        "str", "", "measured quantity; ` - case` means that the value of that case is subtracted"
    ),
    "expected": Column("str", "", "true value in `unit`, or a name"),
    "measured": Column("str", "", "measured value in `unit`, or a name"),
    "deviation": Column("float", "", "measured minus expected in `unit`; empty for names"),
    "tolerance": Column("str", "", "largest accepted deviation; `exact` if none is accepted"),
    "unit": Column("str", "", "unit of the values"),
    "verdict": Column("str", "", "right, wrong or not_measured"),
    "reason": Column("str", "", "why there is no value; else a note on the value"),
    **ORIGIN,
}
_ACCESS: Mapping[str, Column] = {
    **KEY,
    "launch": Column("int", "", "index of the kernel in the launch of the variant, from 0"),
    "kernel": Column("str", "", "kernel name"),
}
_TRACED_SHARE = Column(
    "float", "", "share of the kernel that the counts cover: traced blocks over all, times accesses with room"
)
ACCESSES: Mapping[str, Column] = {
    **_ACCESS,
    "file": Column("str", "", "source file; empty without a line table"),
    "line": Column("int", "", "line number in the source file; 0 without a line table"),
    "text": Column("str", "", "the source line"),
    "offset": Column("int", "B", "place of the instruction from the start of the kernel"),
    "opcode": Column("str", "", "instruction, as it is disassembled; empty if unknown"),
    "space": Column("str", "", "global, shared or local"),
    "kind": Column(
        "str", "", "load, store, atomic, async_copy (cp.async), ldmatrix, stmatrix, wgmma or bulk_copy"
    ),
    "array": Column("str", "", "argument that the addresses belong to; empty for several, or for none"),
    "requests": Column("int", "", "executions by a warp with at least one active lane"),
    "lanes": Column("int", "", "accesses by a lane"),
    "bytes": Column("int", "B", "bytes that all lanes ask for"),
    "distinct_bytes": Column("int", "B", "distinct bytes of each request, summed"),
    "lines": Column(
        "int", "", "distinct cache lines of 128 bytes of each request, summed; global memory only"
    ),
    "ncu_lines": Column("int", "", "the same by Nsight Compute; empty if it did not count"),
    "traced_sectors": Column(
        "int", "", "distinct sectors of 32 bytes of each request, summed, from the traced addresses"
    ),
    "ncu_sectors": Column("int", "", "the same by Nsight Compute; empty if it did not count"),
    "sectors_ideal": Column("int", "", "fewest sectors that hold the distinct bytes of each request, summed"),
    "sectors_per_request": Column("float", "", "traced_sectors divided by requests"),
    "bytes_per_sector": Column("float", "B", "distinct_bytes divided by traced_sectors; at most 32"),
    "traced_wavefronts": Column("int", "", "wavefronts of shared memory, from the traced addresses"),
    "ncu_wavefronts": Column("int", "", "the same by Nsight Compute; empty if it did not count"),
    "wavefronts_ideal": Column("int", "", "wavefronts without bank conflicts, from the traced addresses"),
    "ncu_wavefronts_ideal": Column("int", "", "the same by Nsight Compute; empty if it did not count"),
    "wavefronts_excess": Column("int", "", "traced_wavefronts minus wavefronts_ideal"),
    "ways": Column("int", "", "most distinct words of one bank in one pass of a request; 1 without conflict"),
    "same_address": Column(
        "int", "", "most operations by lanes of this atomic on one address; empty if it is not known"
    ),
    "same_address_lanes": Column("int", "", "the most of a single request"),
    "traced_share": _TRACED_SHARE,
    "ncu_requests": Column("int", "", "executions by a warp, also without an active lane, by Nsight Compute"),
    "ncu_lanes": Column("int", "", "active lanes of all executions, by Nsight Compute"),
    "agreement": Column(
        "str",
        "",
        "equal or differs, if the trace and Nsight Compute counted the same launch; ran_differently: it ran with"
        " other active lanes, as a loop that waits does; undercounted: an asynchronous copy"
        " of which Nsight Compute counts less, as it does with predicate P0; not_counted: it has no counter;"
        " not_traced: the trace has no number; partly_traced: the trace has a part of the blocks",
    ),
    **STATUS,
    "counted": Column("str", "", "ok, or why Nsight Compute did not count the launch (denied, missing, …)"),
    "counted_reason": Column("str", "", "why `counted` is not ok"),
    **ORIGIN,
    "source_sha256": MEASUREMENTS["source_sha256"],
}
TRACED_KERNELS: Mapping[str, Column] = {
    **_ACCESS,
    "blocks": Column("int", "", "blocks of the grid"),
    "threads": Column("int", "", "threads per block"),
    "traced_blocks": Column("int", "", "blocks whose accesses are counted, from the first one on"),
    "entries": Column("int", "", "traced accesses by lanes"),
    "lost": Column("int", "", "accesses by lanes for which the trace had no room"),
    "traced_share": _TRACED_SHARE,
    "same_address": Column(
        "int",
        "",
        "most atomic operations on one address of global memory, by all instructions; empty if there are none, or if"
        " it is not known",
    ),
    "untraced": Column(
        "str",
        "",
        "opcodes that access memory and cannot be traced, with how many are in the code (UTMALDG.2D 4, ...)",
    ),
    "block_bytes": Column(
        "int", "B", "distinct bytes of global memory that a block reads; median over blocks"
    ),
    "wave_blocks": Column("int", "", "blocks of the first wave: those that are on the GPU at once"),
    "wave_bytes": Column("int", "B", "distinct bytes that the first wave reads"),
    "wave_bytes_of_blocks": Column("int", "B", "sum of the distinct bytes that each of its blocks reads"),
    **ORIGIN,
    "source_sha256": MEASUREMENTS["source_sha256"],
}
