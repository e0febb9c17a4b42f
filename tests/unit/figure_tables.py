"""Synthetic tables in the shape of results/tables: no machine measured these numbers.

The sgemm ladder follows rates that were published for an H200 at 4096; everything else (sizes, spread,
counters, launches) is made up from plain formulas, so that figures can be drawn and tested without a GPU.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from warplog.figure_data import FigureTables
from warplog.table_columns import TABLES
from warplog.tables import as_frame

ORIGIN = {"gpu": "h200", "gpu_name": "NVIDIA H200", "origin": "recorded", "campaign": "synthetic"}
GPU = {
    "gpu": "h200", "gpu_name": "NVIDIA H200", "arch": "sm_90", "sms": 132, "fp32_tflops_peak": 66.9,
    "dram_gbytes_per_s_peak": 4800.0, "max_sm_mhz": 1980.0, "source": "datasheet, at 1980 MHz",
}  # fmt: skip
# name: (parent, GFLOP/s at 4096, registers, shared KiB, threads, n-way, DRAM FLOP/B, dominant stall)
SGEMM = {
    "naive": ("", 499, 32, 0, 1024, 1, 390, "lg_throttle"),
    "gmem_coalesced": ("naive", 6229, 32, 0, 1024, 1, 310, "long_scoreboard"),
    "smem_tiled": ("gmem_coalesced", 9062, 38, 8, 1024, 1, 180, "mio_throttle"),
    "blocktile_1d": ("smem_tiled", 16800, 48, 4, 512, 1, 330, "mio_throttle"),
    "blocktile_2d": ("blocktile_1d", 25948, 120, 8, 256, 4, 420, "short_scoreboard"),
    "vectorized": ("blocktile_2d", 31437, 128, 8, 256, 3, 440, "short_scoreboard"),
    "bank_swizzled": ("vectorized", 28042, 128, 8, 256, 1, 437, "mio_throttle"),
    "bank_padded": ("vectorized", 23255, 128, 9, 256, 1.5, 431, "mio_throttle"),
    "autotuned": ("vectorized", 31223, 168, 16, 256, 2, 480, "not_selected"),
    "warptile": ("autotuned", 36267, 168, 16, 128, 1.2, 500, "not_selected"),
    "block_swizzled": ("warptile", 36411, 168, 16, 128, 1.2, 760, "not_selected"),
    "split_k": ("warptile", 33120, 168, 16, 128, 1.2, 240, "long_scoreboard"),
    "double_buffered": ("warptile", 38904, 190, 32, 128, 1.1, 510, "math_pipe_throttle"),
    "cp_async_pipelined": ("double_buffered", 42870, 162, 48, 128, 1, 520, "math_pipe_throttle"),
    "tma_pipelined": ("cp_async_pipelined", 46020, 168, 96, 384, 1, 540, "barrier"),
    "best_of": ("tma_pipelined", 46020, 168, 96, 384, 1, 540, "barrier"),
    "cublas": ("", 51200, 202, 65, 128, 1.05, 690, "math_pipe_throttle"),
}
STALLS = [
    "selected", "not_selected", "long_scoreboard", "short_scoreboard", "mio_throttle", "lg_throttle",
    "barrier", "math_pipe_throttle", "wait", "dispatch_stall", "branch_resolving", "no_instruction", "drain",
    "imc_miss", "membar", "sleeping", "misc", "tex_throttle",
]  # fmt: skip
METRICS = [
    "family", "variant", "case", "kernel", "launch", "metric", "value", "unit", "status", "reason", "tool",
    "tool_version", *ORIGIN,
]  # fmt: skip
TIMELINE = ["family", "variant", "case", "name", "kind", "stream", "start_us", "duration_us", *ORIGIN]
SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384)


def sgemm(
    failed: dict | None = None, uncounted: tuple[str, ...] = (), names: tuple[str, ...] = ()
) -> FigureTables:
    """The ladder, or the variants `names` of it.

    `failed` is {variant or (variant, case): status}; counters of `uncounted` variants were denied.
    """
    failed = failed or {}
    kept = names or tuple(SGEMM)
    orders = {name: order for order, name in enumerate(SGEMM)}
    rows, counters, events, variants = [], [], [], []
    for name in kept:
        parent, rate, *rest = SGEMM[name]
        status = failed.get(name, "ok")
        variants.append(
            _variant("sgemm", name, orders[name], parent, name == "cublas", "4096", "256,4096", len(SGEMM))
        )
        for size in SIZES:
            flops, moved = 2.0 * size**3, 16.0 * size**2
            gflops = rate * _fill(size, orders[name]) / _fill(4096, orders[name])
            here = failed.get((name, str(size)), status)
            rows.append(_measured("sgemm", name, str(size), size, flops, moved, gflops, here))
        for case in ("256", "4096"):
            if status == "ok":
                counters += _counters("sgemm", name, case, rate, *rest, denied=name in uncounted)
                events += _launches("sgemm", name, case, 2.0 * int(case) ** 3 / rate / 1e3)
    return _tables(rows, counters, events, variants, "cublas")


def vector_add(names: tuple[str, ...] = ("scalar", "float4", "grid_stride")) -> FigureTables:
    """A family that DRAM bounds (1/12 FLOP/B) and that has no baseline."""
    rows, counters, events, variants = [], [], [], []
    for order, name in enumerate(names):
        variants.append(
            _variant("vector_add", name, order, names[0] if order else "", False, "16Mi", "16Mi", 3)
        )
        for power in range(16, 28, 2):
            size = 2**power
            rate = (3.9e3 + 120 * order) * size / (size + 3e6) / 12
            case = "16Mi" if power == 24 else str(size)
            rows.append(_measured("vector_add", name, case, size, size, 12.0 * size, rate, "ok"))
        facts = (340 + order * 9, 16 + 4 * order, 0, 256, 1, 1 / 12, "long_scoreboard")
        counters += _counters("vector_add", name, "16Mi", *facts)
        events += _launches("vector_add", name, "16Mi", 52.0 - order)
    return _tables(rows, counters, events, variants, "")


def twenty() -> FigureTables:
    """A ladder of twenty variants with long names, each 12 % faster than its parent, and one baseline."""
    names = [f"variant_with_a_long_name_{i:02d}" for i in range(19)] + ["library"]
    rows, counters, events, variants = [], [], [], []
    for order, name in enumerate(names):
        parent = names[order - 1] if 0 < order < 19 else ""
        variants.append(_variant("sgemm", name, order, parent, name == "library", "4096", "4096", 20))
        rate = 6000 * 1.12**order
        for size in SIZES:
            gflops = rate * _fill(size, order) / _fill(4096, order)
            flops, moved = 2.0 * size**3, 16.0 * size**2
            rows.append(_measured("sgemm", name, str(size), size, flops, moved, gflops, "ok"))
        facts = (rate, 64, 8, 256, 1, 100 + 10 * order, STALLS[2 + order % 9])
        counters += _counters("sgemm", name, "4096", *facts)
        events += _launches("sgemm", name, "4096", 2.0 * 4096**3 / rate / 1e3)
    return _tables(rows, counters, events, variants, "library")


def write(tables: FigureTables, folder: Path, suffix: str = "parquet") -> list[Path]:
    """Writes the tables with the documented columns and types, as the workflow does; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in TABLES.items():
        rows = getattr(tables, name, pd.DataFrame()).to_dict("records")
        rows = [
            {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in row.items()} for row in rows
        ]
        frame = as_frame(rows, columns, name)
        path = folder / f"{name}.{suffix}"
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path, index=False)
    return [folder / f"{name}.{suffix}" for name in TABLES]


def _fill(size: int, order: int) -> float:
    """Share of the rate at infinite size that is reached: large tiles need large problems."""
    return 1 / (1 + ((150 + 45 * order) / size) ** 2)


def _variant(family, name, order, parent, is_baseline, headline, profiled, rungs):
    return {
        "family": family, "variant": name, "order": order, "rungs": rungs, "parent": parent,
        "idea": f"the idea of {name}",
        "credit": "", "is_baseline": is_baseline, "headline_case": headline, "profile_cases": profiled,
        "parameters": json.dumps({}), "registers_per_thread": 64, "static_shared_bytes": 0, "spill_bytes": 0,
        "source_sha256": "0" * 64, "size_label": "M = N = K (elements)", **ORIGIN,
    }  # fmt: skip


def _measured(family, name, case, size, flops, moved, gflops, status):
    ok = status == "ok"
    us = flops / gflops / 1e3 if ok else np.nan
    spread = 0.002 + 0.02 / np.log2(size)
    reasons = {"wrong": "max error 3.1e+02 times the tolerance", "compile_error": "identifier undefined"}
    return {
        "family": family, "variant": name, "case": case, "size": size, "status": status,
        "reason": reasons.get(status, ""), "median_us": us, "q1_us": us * (1 - spread),
        "q3_us": us * (1 + 2 * spread), "min_us": us * 0.98, "max_us": us * 1.1, "mean_us": us * 1.001,
        "samples": 40 if ok else np.nan,
        "rel_spread": 3 * spread if ok else np.nan, "hot_us": us * 0.98, "hot_rel_spread": 0.002,
        "empty_us": 1.28, "sm_mhz": 1965.0 + len(name) % 16 if ok else np.nan, "power_w": 520.0,
        "temperature_c": 48.0, "throttle_reasons": "", "gflops": gflops if ok else np.nan,
        "gbytes_per_s": moved / us / 1e3,
        "max_error_over_tolerance": 0.2 if ok else np.nan, "ncu_us": us, "nsys_us": us, "agreement": "ok",
        "measured_at": "2026-01-01T00:00:00Z", "source_sha256": "0" * 64, **ORIGIN,
    }  # fmt: skip


def _counters(family, name, case, rate, registers, shared, threads, ways, intensity, stall, denied=False):
    """One launch's metrics; a kernel that issues more often waits less, in the state `stall` most of all."""
    size = int(case) if case.isdigit() else 4096
    limits = {
        "warps": 64 * 32 // threads, "registers": max(1, 65536 // (registers * threads)),
        "shared_memory": 228 // (shared + 1), "blocks": 32, "barriers": 24,
    }  # fmt: skip
    warps = min(limits.values()) * threads / 32
    active = min(0.93, 0.06 + rate / 56000)
    latency = max(1.4, warps / 4 * 0.94 / active)
    others = {r: 0.3 / (2 + i) for i, r in enumerate(STALLS[1:]) if r != stall}
    rest, whole = latency - 1.0, sum(others.values())
    share = {r: rest * 0.55 * v / whole for r, v in others.items()} | {stall: rest * 0.45, "selected": 1.0}
    wavefronts = size**3 / (32 * (1.5 if rate < 12000 else 9)) if shared else 0.0
    values = {
        "duration_us": 2.0 * size**3 / rate / 1e3, "registers_per_thread": registers,
        "block_threads": threads, "theoretical_occupancy_pct": warps / 64 * 100,
        "achieved_occupancy_pct": warps / 64 * 94,
        **{f"occupancy_limit_{k}_blocks": v for k, v in limits.items()},
        **{f"stall_{r}_cycles_per_issue": v for r, v in share.items()},
        **{f"stall_{r}_pct": 100 * v / latency for r, v in share.items()},
        "warp_cycles_per_issue": latency, "issue_active_pct": active * 100,
        "shared_wavefronts": wavefronts * ways, "shared_wavefronts_ideal": wavefronts,
        "shared_wavefronts_excess": wavefronts * (ways - 1),
        "shared_conflict_ways": ways if shared else np.nan,
        "fp32_flops": 2.0 * size**3, "dram_bytes": 2.0 * size**3 / intensity, "tensor_flops": 0.0,
        "arithmetic_intensity_flop_per_byte": intensity,
    }  # fmt: skip
    key = {"family": family, "variant": name, "case": case}
    rows = [key | _row(f"{name}_kernel", 0, metric, value, denied) for metric, value in values.items()]
    if name == "split_k":
        rows += [key | _row("split_k_reduce", 1, metric, v * 0.02, denied) for metric, v in values.items()]
    return rows


def _row(kernel, launch, metric, value, denied):
    return {
        "kernel": kernel, "launch": launch, "metric": metric,
        "value": np.nan if denied else float(value), "unit": "", "status": "denied" if denied else "ok",
        "reason": "ERR_NVGPUCTRPERM: no permission for counters" if denied else "", "tool": "ncu",
        "tool_version": "2025.3", **ORIGIN,
    }  # fmt: skip


def _launches(family, name, case, us, count=10):
    rows, clock = [], 1000.0
    parts = [(f"{name}_kernel", us * 0.96)]
    parts += [("split_k_reduce", us * 0.04)] if name == "split_k" else []
    for launch in range(count):
        for kernel, duration in parts:
            took = duration * (1 + 0.004 * ((launch * 7) % 5))
            rows.append({
                "family": family, "variant": name, "case": case, "name": kernel, "kind": "kernel",
                "stream": 7, "start_us": clock, "duration_us": took, **ORIGIN,
            })  # fmt: skip
            clock += took + 1.1 + (9.0 if launch == 3 else 0.0)
    return rows


def _tables(rows, counters, events, variants, baseline):
    measurements = pd.DataFrame(rows)
    base = measurements[measurements["variant"] == baseline].set_index("case")["median_us"]
    reference = measurements["case"].map(base) if baseline else np.nan
    measurements["ratio_to_baseline"] = reference / measurements["median_us"]
    measurements["ratio_q1"] = reference / measurements["q3_us"]
    measurements["ratio_q3"] = reference / measurements["q1_us"]
    measurements["baseline"] = baseline
    return FigureTables(
        measurements, pd.DataFrame(counters, columns=METRICS), pd.DataFrame(events, columns=TIMELINE),
        pd.DataFrame(variants), pd.DataFrame([GPU]),
    )  # fmt: skip


def overlap() -> FigureTables:
    """Two variants that copy and compute: one after the other, and in three streams."""
    tables = vector_add(("one_stream", "three_streams"))
    rows = []
    for name, streams in (("one_stream", 1), ("three_streams", 3)):
        free, engines = [0.0] * streams, dict.fromkeys(("Host-to-Device", "add", "Device-to-Host"), 0.0)
        for chunk in range(6):
            stream = chunk % streams
            for what, duration in zip(engines, (300.0, 180.0, 290.0), strict=True):
                start = max(free[stream], engines[what])
                free[stream] = engines[what] = start + duration
                rows.append({
                    "family": "vector_add", "variant": name, "case": "16Mi", "name": what,
                    "kind": "kernel" if what == "add" else "memcpy", "stream": 13 + stream,
                    "start_us": start, "duration_us": duration, **ORIGIN,
                })  # fmt: skip
    return replace(tables, timeline=pd.DataFrame(rows, columns=TIMELINE))
