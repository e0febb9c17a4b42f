"""The columns of all tables: type, unit and meaning."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column; `kind` is str, int, float or bool; `unit` is '' for names and ratios."""

    kind: str
    unit: str
    meaning: str


KEY: Mapping[str, Column] = {
    "family": Column("str", "", "family of kernels"),
    "variant": Column("str", "", "variant of the family"),
    "case": Column("str", "", "problem; empty where the value holds for all of them"),
}
ORIGIN: Mapping[str, Column] = {
    "gpu": Column("str", "", "slug of the GPU"),
    "gpu_name": Column("str", "", "the GPU's name as the driver gives it"),
    "origin": Column(
        "str", "", "live: measured by this installation; recorded: taken from a recorded campaign"
    ),
    "campaign": Column("str", "", "name of the campaign"),
}
STATUS: Mapping[str, Column] = {
    "status": Column("str", "", "ok, or what went wrong (compile_error, wrong, crashed, timeout, …)"),
    "reason": Column("str", "", "why the status is not ok; a remark where it is"),
}


MEASUREMENTS: Mapping[str, Column] = {
    **KEY,
    "size": Column("int", "", "the family's size formula for this case: the x axis"),
    **STATUS,
    "median_us": Column("float", "us", "median cold time: clean L2, empty interval subtracted"),
    "q1_us": Column("float", "us", "first quartile of the cold time"),
    "q3_us": Column("float", "us", "third quartile of the cold time"),
    "min_us": Column("float", "us", "smallest cold time"),
    "max_us": Column("float", "us", "largest cold time"),
    "mean_us": Column("float", "us", "mean cold time"),
    "samples": Column("int", "", "number of cold samples"),
    "rel_spread": Column("float", "", "(q3 - q1) / (1.349 median) of the cold time"),
    "hot_us": Column(
        "float",
        "us",
        "median time of a launch in a CUDA graph of back-to-back launches; config: time.hot_cases",
    ),
    "hot_rel_spread": Column("float", "", "relative spread of the hot time"),
    "first_launch_us": Column("float", "us", "host time of the case's first launch, until it has ended"),
    "empty_us": Column("float", "us", "the empty interval that was subtracted"),
    "sm_mhz": Column("float", "MHz", "median SM clock during the cold samples"),
    "power_w": Column("float", "W", "median board power while the case was timed"),
    "temperature_c": Column("float", "degC", "highest GPU temperature while the case was timed"),
    "throttle_reasons": Column("str", "", "throttle reasons seen while the case was timed"),
    "hot_power_w": Column(
        "float", "W", "mean board power over a long hot run, from its energy counter if any"
    ),
    "hot_sm_mhz": Column("float", "MHz", "mean SM clock over a long hot run"),
    "energy_j": Column("float", "J", "board energy of one launch of a long hot run"),
    "gflop_per_j": Column("float", "GFLOP/J", "the algorithm's FLOPs over energy_j"),
    "pj_per_flop": Column("float", "pJ/FLOP", "energy_j over the algorithm's FLOPs"),
    "tflops_per_ghz": Column("float", "TFLOP/s/GHz", "FLOP rate of a long hot run over its mean SM clock"),
    "gflops": Column("float", "GFLOP/s", "the algorithm's FLOPs over the median cold time"),
    "gbytes_per_s": Column("float", "GB/s", "compulsory traffic over the median cold time"),
    "ratio_to_baseline": Column(
        "float", "", "baseline's median over this median: 1 is as fast as the baseline"
    ),
    "ratio_q1": Column("float", "", "baseline's median over this third quartile (slower end)"),
    "ratio_q3": Column("float", "", "baseline's median over this first quartile (faster end)"),
    "baseline": Column("str", "", "the variant that ratios refer to"),
    "max_error_over_tolerance": Column("float", "", "largest error seen by the check, over the tolerance"),
    "ncu_us": Column("float", "us", "ncu's gpu__time_duration, cold, summed over the launch's kernels"),
    "nsys_us": Column("float", "us", "nsys' median duration of back-to-back launches, kernels summed"),
    "agreement": Column(
        "str",
        "",
        "ok where cold agrees with ncu and hot with nsys within 3 % + 1 us; else both numbers; empty"
        " where neither profiler measured the like: no capture, or times with the host's part",
    ),
    **ORIGIN,
    "measured_at": Column("str", "", "when the timing job ended, ISO 8601 UTC"),
    "commit": Column("str", "", "commit of the code that measured, if it was a checkout"),
    "clocks": Column("str", "", "unlocked, or the frequency they were locked to"),
    "source_sha256": Column("str", "", "fingerprint of the measured source, its headers and parameters"),
}
METRICS: Mapping[str, Column] = {
    **KEY,
    "kernel": Column("str", "", "kernel name; empty where the value is of the whole launch"),
    "launch": Column("int", "", "number of the kernel within the case, from 0"),
    "metric": Column("str", "", "name in the metric registry"),
    "value": Column("float", "", "value in `unit`; missing where status is not ok"),
    "unit": Column("str", "", "unit of the value"),
    **STATUS,
    "tool": Column("str", "", "ptxas, cuobjdump, ncu or nsys"),
    "tool_version": Column("str", "", "version of the tool"),
    **ORIGIN,
}
TIMELINE: Mapping[str, Column] = {
    **KEY,
    "name": Column("str", "", "what ran: kernel, copy or API call"),
    "kind": Column("str", "", "kernel, memcpy, memset or api"),
    "stream": Column("int", "", "CUDA stream"),
    "start_us": Column("float", "us", "start, from the first event of the capture"),
    "duration_us": Column("float", "us", "duration"),
    "launch": Column("int", "", "number of the launch within the case, from 0; missing where not recorded"),
    **ORIGIN,
}
POWER_TRACE: Mapping[str, Column] = {
    **KEY,
    "time_s": Column("float", "s", "time since the first launch of the hot run"),
    "sm_mhz": Column("float", "MHz", "SM clock at that time"),
    "power_w": Column("float", "W", "board power at that time"),
    "temperature_c": Column("float", "degC", "GPU temperature at that time"),
    "energy_j": Column("float", "J", "the board's energy counter at that time"),
    "throttle_reasons": Column("str", "", "throttle reasons at that time"),
    "gflops": Column("float", "GFLOP/s", "the algorithm's FLOPs over the time of a launch at that time"),
    **ORIGIN,
}
LINES: Mapping[str, Column] = {
    **KEY,
    "kernel": Column("str", "", "kernel name"),
    "launch": Column("int", "", "number of the kernel within the case, from 0"),
    "file": Column("str", "", "source file"),
    "line": Column("int", "", "line in the source file"),
    "text": Column("str", "", "the line itself, where the file is the variant's own"),
    "samples": Column("float", "", "looks at a warp that was at this line; 0 where nothing was sampled"),
    "sample_share": Column("float", "", "of the launch's samples"),
    "instructions": Column("float", "inst", "executed here, counted per warp"),
    "instruction_share": Column("float", "", "of the launch's instructions"),
    "shared_wavefronts_excess": Column("float", "", "shared-memory wavefronts beyond the least number"),
    "stall": Column("str", "", "what warps waited for here most often"),
    "stall_samples": Column("float", "", "samples in that state"),
    **ORIGIN,
}
LIBRARY_KERNELS: Mapping[str, Column] = {
    **KEY,
    "order": Column("int", "", "place in a launch of the variant, from 0"),
    "kind": Column("str", "", "kernel, or memcpy or memset where the library copies"),
    "kernel": METRICS["kernel"],
    "short_name": Column("str", "", "the name without namespaces, types and what all of them share"),
    "is_split_k": Column("bool", "", "its name says that it splits K or adds up the parts"),
    "grid": Column("str", "", "blocks as XxYxZ (nsys); empty where no capture told it"),
    "grid_blocks": Column("int", "", "blocks in the grid (nsys, else ncu)"),
    "block": Column("str", "", "threads of a block as XxYxZ (nsys); empty where no capture told it"),
    "block_threads": Column("int", "", "threads of a block (nsys, else ncu)"),
    "registers_per_thread": Column("int", "", "registers that a thread holds (nsys, else ncu)"),
    "shared_bytes": Column("int", "B", "static and dynamic shared memory of a block (nsys)"),
    "ncu_shared_bytes": Column("int", "B", "the same with the driver's part (ncu)"),
    "nsys_us": Column("float", "us", "median over back-to-back launches; the same kernel twice counts twice"),
    "ncu_us": Column("float", "us", "ncu's gpu__time_duration, cold"),
    "share_pct": Column("float", "%", "of the launch's time in nsys"),
    **ORIGIN,
}
VARIANTS: Mapping[str, Column] = {
    "family": KEY["family"],
    "variant": KEY["variant"],
    "order": Column("int", "", "place in the ladder, from 0"),
    "rungs": Column(
        "int", "", "number of variants in the ladder, drafts only where one is among those shown"
    ),
    "parent": Column("str", "", "the variant that this one improves on"),
    "idea": Column("str", "", "the idea in one sentence"),
    "credit": Column("str", "", "where the idea was published"),
    "is_baseline": Column("bool", "", "whether ratios refer to it"),
    "headline_case": Column("str", "", "the case that single numbers quote"),
    "profile_cases": Column("str", "", "captured cases, comma separated"),
    "size_label": Column("str", "", "label of the x axis"),
    "title": Column("str", "", "title of the family"),
    "limit": Column("str", "", "what bounds its bytes: dram, or pcie where they cross the bus"),
    "flops": Column("float", "FLOP", "the algorithm's FLOPs in the headline case"),
    "bytes": Column("float", "B", "compulsory traffic in the headline case"),
    "parameters": Column("str", "", "tile sizes and the like, as JSON"),
    **STATUS,
    "registers_per_thread": Column("int", "", "most registers of its kernels (ptxas)"),
    "static_shared_bytes": Column("int", "B", "most static shared memory of its kernels (ptxas)"),
    "spill_bytes": Column("int", "B", "spill stores and loads of all its kernels (ptxas)"),
    "build_origin": Column("str", "", "live: compiled here; recorded: in the campaign"),
    "source_sha256": MEASUREMENTS["source_sha256"],
    **ORIGIN,
}
GPUS: Mapping[str, Column] = {
    "gpu": ORIGIN["gpu"],
    "gpu_name": ORIGIN["gpu_name"],
    "arch": Column("str", "", "architecture compiled for"),
    "sms": Column("int", "", "streaming multiprocessors"),
    "fp32_tflops_peak": Column("float", "TFLOP/s", "FP32 peak without tensor cores"),
    "bf16_tflops_peak": Column("float", "TFLOP/s", "bfloat16 peak of the tensor cores, without sparsity"),
    "dram_gbytes_per_s_peak": Column("float", "GB/s", "device-memory peak"),
    "pcie_gbytes_per_s_peak": Column("float", "GB/s", "one direction of the link between host and GPU"),
    "l2_mib": Column("float", "MiB", "L2 cache"),
    "max_sm_mhz": Column("float", "MHz", "highest SM clock"),
    "source": Column("str", "", "where the peaks come from"),
}
SANITIZE: Mapping[str, Column] = {
    "family": KEY["family"],
    "variant": KEY["variant"],
    "tool": Column("str", "", "memcheck, racecheck, initcheck or synccheck"),
    "status": Column("str", "", "ok, finding, or why the tool could say nothing"),
    "reason": Column("str", "", "the first finding, or why there is none"),
    "kind": Column("str", "", "invalid_read, invalid_write, race, uninitialized_read, barrier, ..."),
    "message": Column("str", "", "the tool's words, without addresses"),
    "kernel": Column("str", "", "kernel, without its arguments"),
    "file": Column("str", "", "source file"),
    "line": Column("int", "", "line in the source file"),
    "count": Column("int", "", "how often it was reported"),
    "cases": Column("int", "", "check cases that the tool saw"),
    "seconds": Column("float", "s", "wall time of the tool"),
    **ORIGIN,
    "source_sha256": MEASUREMENTS["source_sha256"],
}
# Of results/tune/<gpu>/<family>/<variant>.csv, where the searched parameters follow as columns.
TUNE: Mapping[str, Column] = {
    "family": Column("str", "", "family of kernels"),
    "variant": Column("str", "", "the variant that was tuned"),
    "gpu": Column("str", "", "slug of the GPU"),
    "setting": Column("str", "", "name of the setting; its parameters follow as columns of their own"),
    "rank": Column(
        "int", "", "place among the settings with a time, from 1; the first went through the final"
    ),
    "is_default": Column("bool", "", "the setting of family.yaml"),
    "status": Column("str", "", "ok, or why there is no time; skipped where the minutes were over"),
    "reason": Column("str", "", "the words to the status"),
    "case": Column("str", "", "the timed case; the row repeats for each case that decides"),
    "score_us": Column("float", "us", "geometric mean over the cases; of the final where it took part"),
    "median_us": Column("float", "us", "median cold time of the look"),
    "q1_us": Column("float", "us", "first quartile of the look"),
    "q3_us": Column("float", "us", "third quartile of the look"),
    "rel_spread": Column("float", "", "(q3 - q1) / (1.349 median) of the look"),
    "samples": Column("int", "", "cold samples of the look"),
    "hot_us": Column("float", "us", "median time of a launch in a CUDA graph, of the look"),
    "final_us": Column("float", "us", "median over the final's rounds of the median cold time"),
    "gflops": Column(
        "float", "GFLOP/s", "the algorithm's FLOPs over final_us, or over median_us without one"
    ),
    "registers_per_thread": Column("int", "", "most registers of its kernels (ptxas)"),
    "spill_bytes": Column("int", "B", "spill stores and loads of all its kernels (ptxas)"),
    "block_threads": Column("int", "", "threads of a block"),
    "shared_bytes": Column("int", "B", "static and dynamic shared memory of a block"),
    "theoretical_occupancy_pct": Column(
        "float", "%", "warps that an SM can hold, of the kernel with most registers"
    ),
}
PUBLISHED: Mapping[str, Column] = {
    **{name: MEASUREMENTS[name] for name in ("family", "variant", "case", "size", "status", "reason")},
    "value": Column("float", "", "our rate in `unit`, from the median cold time"),
    "unit": Column("str", "", "unit of `value` and `published`"),
    "ratio_to_baseline": MEASUREMENTS["ratio_to_baseline"],
    "published": Column("float", "", "what someone else printed for this variant, in `unit`"),
    "published_case": Column("str", "", "the case it is for; empty where unknown: then at the headline case"),
    "published_gpu": Column("str", "", "the GPU that it was measured on"),
    "published_source": Column("str", "", "who printed it, and where"),
    "published_ratio": Column(
        "float", "", "it over the same source's figure for the baseline, same GPU, case"
    ),
    **ORIGIN,
}
STAGES: Mapping[str, Column] = {
    "family": KEY["family"],
    "variant": KEY["variant"],
    "stage": Column("str", "", "build, check, time, ncu or nsys"),
    "status": Column("str", "", "of the stage's record"),
    "cases": Column("int", "", "cases that ran; none of a build"),
    "seconds": Column(
        "float", "s", "wall time of the compiler, or of the cases, in which nobody else has the GPU"
    ),
    "start_seconds": Column(
        "float",
        "s",
        "share of starting and ending the process that serves all variants, GPU held; or unknown",
    ),
    **ORIGIN,
}


TABLES: Mapping[str, Mapping[str, Column]] = {
    "measurements": MEASUREMENTS,
    "metrics": METRICS,
    "timeline": TIMELINE,
    "lines": LINES,
    "library_kernels": LIBRARY_KERNELS,
    "variants": VARIANTS,
    "gpus": GPUS,
    "published": PUBLISHED,
    "power_trace": POWER_TRACE,
    "stages": STAGES,
}


CLAIMS: Mapping[str, Column] = {
    "family": KEY["family"],
    "id": Column("str", "", "the claim's name, in this family"),
    "claim": Column("str", "", "what is asserted"),
    "source": Column("str", "", "who asserts it"),
    "published": Column("str", "", "the figure that was published"),
    "verdict": Column("str", "", "confirmed, refuted or not_measurable"),
    "measured": Column("float", "", "value of `measure` in `unit`; missing where there is none"),
    "unit": Column("str", "", "unit of the value; empty for ratios and counts"),
    "condition": Column("str", "", "what `measured` must be for the claim to be confirmed"),
    "measure": Column("str", "", "the formula, of measurements and metrics of variants"),
    "case": Column("str", "", "the problem that is meant where the formula names none"),
    "evidence": Column("str", "", "the numbers that went into the formula"),
    "reason": Column(
        "str", "", "why the claim is not measurable; beside a verdict, remarks on the rows behind it"
    ),
    **ORIGIN,
}
ORACLE: Mapping[str, Column] = {
    "probe": Column("str", "", "what is known of the kernel"),
    **KEY,
    "quantity": Column("str", "", "what was measured; less that of another case where ` - case` follows"),
    "expected": Column("str", "", "the true value in `unit`, or a name"),
    "measured": Column("str", "", "the measured value in `unit`, or a name"),
    "deviation": Column("float", "", "measured less expected, in `unit`; none between names"),
    "tolerance": Column("str", "", "the largest deviation that is right; `exact`: none"),
    "unit": Column("str", "", "unit of the values"),
    "verdict": Column("str", "", "right, wrong or not_measured"),
    "reason": Column("str", "", "why there is no value; a remark where there is one"),
    **ORIGIN,
}
