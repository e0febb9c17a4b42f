"""Small tables of a made-up campaign, in the columns of the real ones."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplog.table_columns import TABLES
from warplog.tables import as_frame

CAMPAIGN: dict[str, Any] = {
    "schema": 1,
    "stage": "campaign",
    "campaign": "h200-2026-11-20-1a2b3c4",
    "gpu": "h200",
    "gpu_name": "NVIDIA H200",
    "arch": "sm_90",
    "origin": "live",
    "commit": "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d",
    "content_sha256": "ab" * 32,
    "started": "2026-11-20T03:00:00Z",
    "driver": "580.82.07",
    "cuda": "13.0",
    "tools": {"nvcc": "13.0.88", "ncu": "2025.3.1", "nsys": None},
}
SIZES = (256, 512, 1024, 2048, 4096)
PROFILED = (1024, 4096)


@dataclass(frozen=True)
class Rung:
    """A made-up variant: TFLOP/s and DRAM gigabytes at 4096, stall cycles per issue by reason."""

    idea: str
    tflops: float = 0.0
    tiles: tuple[tuple[str, int], ...] = ()
    registers: int = 32
    shared: int = 0
    occupancy: float = 98.0
    ways: float = 1.0
    gigabytes: float = 1.0
    stalls: tuple[float, float, float] = (1.0, 1.0, 1.0)
    bad: tuple[str, str] = ("ok", "")


def _tiles(*sizes: int) -> tuple[tuple[str, int], ...]:
    return tuple(zip(("BM", "BN", "BK", "TM", "TN"), sizes, strict=False))


_LARGE = _tiles(128, 128, 8, 8, 8)
_OFF = "error is 13 times the tolerance at 127x129x65"
LADDER = {
    "cublas": Rung("the vendor's library", 51.2, (), 128, 65536, 24.0, 1.0, 0.49, (0.3, 0.1, 0.2)),
    "naive": Rung("one thread an element", 0.5, (), 32, 0, 98.0, 1.0, 2.9, (48.0, 0.0, 0.0)),
    "gmem_coalesced": Rung("coalesced columns", 6.2, (), 32, 0, 99.0, 1.0, 1.9, (31.0, 0.0, 0.0)),
    "smem_tiled": Rung("shared tiles", 9.1, _tiles(32, 32, 32), 37, 8192, 97.0, 1.0, 1.1, (4.0, 17.0, 5.0)),
    "blocktile_1d": Rung("a column", 16.8, _tiles(64, 64, 8, 8), 46, 4096, 74.0, 1.1, 0.9, (2.5, 6.0, 2.0)),
    "blocktile_2d": Rung("8x8 results a thread", 25.9, _LARGE, 122, 8192, 24.5, 2.0, 0.8, (1.8, 2.4, 1.1)),
    "vectorized": Rung("float4 | A transposed", 31.4, _LARGE, 120, 8192, 24.6, 1.9, 0.7, (1.2, 1.5, 0.9)),
    "warptile": Rung(
        "warp tiles", 36.3, _tiles(128, 128, 16, 8, 4), 168, 16384, 12.5, 1.0, 0.6, (0.9, 0.7, 0.6)
    ),
    "broken": Rung("forgets a barrier", 40.0, _tiles(64, 64, 8, 4, 4), bad=("wrong", _OFF)),
    "tma_pipelined": Rung("TMA loads", 40.0, bad=("unsupported", "needs sm_100a, this GPU is sm_90")),
}
Rows = dict[str, list[dict[str, Any]]]


def write_tables(folder: Path, origin: str = "live", campaign: str = CAMPAIGN["campaign"]) -> Path:
    """Writes the tables of sgemm (ten variants) and histogram (two variants, two cases of each size)."""
    mark = {"gpu": "h200", "gpu_name": "NVIDIA H200", "origin": origin, "campaign": campaign}
    rows: Rows = {name: [] for name in TABLES}
    for order, name in enumerate(LADDER):
        _sgemm(rows, order, name)
    for order, (name, slow) in enumerate((("cub", 1.0), ("global_atomics", 9.0))):
        _histogram(rows, order, name, slow)
    for name in ("measurements", "metrics", "variants"):
        rows[name] = [{**row, **mark} for row in rows[name]]
    peaks = {"fp32_tflops_peak": 66.9, "dram_gbytes_per_s_peak": 4800.0, "max_sm_mhz": 1980.0}
    rows["gpus"].append({"gpu": "h200", "gpu_name": "NVIDIA H200", "arch": "sm_90", "sms": 132, **peaks})
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in TABLES.items():
        as_frame(rows[name], columns, name).to_parquet(folder / f"{name}.parquet")
    return folder


def _sgemm(rows: Rows, order: int, name: str) -> None:
    rung = LADDER[name]
    key = {"family": "sgemm", "variant": name}
    status, reason = rung.bad
    for size in SIZES:
        head = {**key, "case": str(size), "size": size, "status": status, "reason": reason}
        speed, best = (t * 1e3 * size / (size + 700) * 1.171 for t in (rung.tflops, 51.2))
        times = _times(2 * size**3 / speed / 1e3, 12 * size**2, speed / best) | {"gflops": speed}
        rows["measurements"].append(head | (times if status == "ok" else {}))
    about = {"title": "FP32 matrix multiplication", "size_label": "matrix size n", "parent": ""}
    about |= {"parent": list(LADDER)[order - 1]} if order > 1 else {}
    about |= {"credit": "S. Boehm, CUDA matmul worklog"} if name == "warptile" else {}
    about |= {"headline_case": "4096", "profile_cases": "1024,4096", "is_baseline": name == "cublas"}
    facts = {"registers_per_thread": rung.registers, "static_shared_bytes": rung.shared, "spill_bytes": 0}
    own = {
        "order": order,
        "rungs": len(LADDER),
        "idea": rung.idea,
        "parameters": json.dumps(dict(rung.tiles)),
    }
    rows["variants"].append({**key, **own, **about, **facts})
    for metric in ("registers_per_thread", "static_shared_bytes", "sass_FFMA", "sass_LDG.E.128"):
        _count(rows, key, "", f"{name}_kernel", 0, "ptxas", {metric: facts.get(metric, 64.0)})
    for size in PROFILED if status == "ok" else ():
        values = _counters(rung, size)
        _count(rows, key, str(size), "fill_zero", 0, "ncu", {m: v / 50 for m, v in values.items()})
        _count(rows, key, str(size), f"void {name}_kernel<8, 8>(float*)", 1, "ncu", values)
        _count(rows, key, str(size), "", 0, "nsys", {"nsys_duration_us": values["duration_us"] * 1.02})


def _histogram(rows: Rows, order: int, name: str, slow: float) -> None:
    key = {"family": "histogram", "variant": name}
    for size in (1 << 20, 1 << 24):
        for data, skew in (("uniform", 1.0), ("skewed", 3.0)):
            head = {**key, "case": f"{data}-{size}", "size": size, "status": "ok", "reason": ""}
            rows["measurements"].append(head | _times(size / 1e6 * slow * skew, 4 * size, 1 / slow))
    about = {
        "order": order,
        "rungs": 2,
        "idea": "bins in global memory",
        "parameters": "{}",
        "is_baseline": name == "cub",
    }
    case = f"uniform-{1 << 24}"
    rows["variants"].append({**key, **about, "headline_case": case, "profile_cases": case})
    _count(rows, key, case, name, 0, "ncu", {"dram_bytes": 4.0 * (1 << 24)})


def _times(time_us: float, moved: float, ratio: float) -> dict[str, Any]:
    factors = {
        "median": 1.0,
        "q1": 0.99,
        "q3": 1.01,
        "min": 0.98,
        "max": 1.1,
        "mean": 1.005,
        "hot": 0.96,
        "ncu": 1.01,
    }
    noise = {"samples": 40, "rel_spread": 0.011, "hot_rel_spread": 0.004, "empty_us": 1.28}
    device = {"sm_mhz": 1965.0, "power_w": 520.5, "temperature_c": 51.0, "max_error_over_tolerance": 0.2}
    ratios = {"ratio_to_baseline": ratio, "ratio_q1": ratio * 0.99, "ratio_q3": ratio * 1.01}
    when = {"measured_at": "2026-11-20T03:10:00Z", "commit": CAMPAIGN["commit"], "source_sha256": "cd" * 32}
    times = {f"{name}_us": time_us * factor for name, factor in factors.items()}
    return {**times, **noise, **device, **ratios, **when, "gbytes_per_s": moved / time_us / 1e3}


def _count(
    rows: Rows, key: dict[str, str], case: str, kernel: str, launch: int, tool: str, values: dict[str, Any]
) -> None:
    for metric, value in values.items():
        what = {
            "case": case,
            "kernel": kernel,
            "launch": launch,
            "metric": metric,
            "value": value,
            "tool": tool,
        }
        rows["metrics"].append({**key, **what, "status": "ok" if value == value else "missing"})


def _counters(rung: Rung, size: int) -> dict[str, float]:
    scale = (size / 4096) ** 3
    scoreboard, throttle, barrier = rung.stalls
    waits = {"long_scoreboard": scoreboard, "mio_throttle": throttle, "barrier": barrier, "selected": 1.0}
    total = sum(waits.values())
    return {
        "duration_us": 2 * size**3 / rung.tflops / 1e6,
        "registers_per_thread": float(rung.registers),
        "achieved_occupancy_pct": rung.occupancy,
        "occupancy_limit_registers_blocks": 2.0,
        "occupancy_limit_warps_blocks": 4.0,
        "shared_conflict_ways": rung.ways,
        "shared_wavefronts_excess": (rung.ways - 1) * 1e8 * scale,
        "dram_bytes": rung.gigabytes * 1e9 * scale,
        "dram_throughput_pct": 9.0 + rung.gigabytes * 10,
        "sm_throughput_pct": min(95.0, 8 + rung.tflops * 1.6),
        "l2_hit_pct": 78.5,
        "issue_active_pct": min(90.0, 4 + rung.tflops * 1.5),
        "tensor_flops": float("nan"),
        **{f"stall_{reason}_cycles_per_issue": wait for reason, wait in waits.items()},
        **{f"stall_{reason}_pct": 100 * wait / total for reason, wait in waits.items()},
    }
