"""Small tables of a made-up campaign, with the columns of the real ones."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import made_up_records
from made_up_tables import MadeUpTables, write

CAMPAIGN = made_up_records.campaign(
    campaign="h200-2026-11-20-1a2b3c4",
    commit="1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d",
    content_sha256="ab" * 32,
    started="2026-11-20T03:00:00Z",
    driver="580.82.07",
    cuda="13.0",
    tools={"nvcc": "13.0.88", "ncu": "2025.3.1", "nsys": None},
)
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
    "vectorized": Rung("float4 | A transposed", 31.4, _LARGE, 120, 8192, 24.6, 1.9, 0.7, (1.2, 1.5, 0.9)),
    "warptile": Rung(
        "warp tiles", 36.3, _tiles(128, 128, 16, 8, 4), 168, 16384, 12.5, 1.0, 0.6, (0.9, 0.7, 0.6)
    ),
    "broken": Rung("forgets a barrier", 40.0, _tiles(64, 64, 8, 4, 4), bad=("wrong", _OFF)),
    "tma_pipelined": Rung("TMA loads", 40.0, bad=("unsupported", "needs sm_100a, this GPU is sm_90")),
}


def write_tables(folder: Path, origin: str = "live", campaign: str = CAMPAIGN.campaign) -> Path:
    """Writes the tables of sgemm (six variants) and histogram (two variants, two cases of each size)."""
    made = MadeUpTables(origin, campaign)
    for order, name in enumerate(LADDER):
        _sgemm(made, order, name)
    for order, (name, slow) in enumerate((("cub", 1.0), ("global_atomics", 9.0))):
        _histogram(made, order, name, slow)
    write(made.tables(sgemm="cublas", histogram="cub"), folder)
    return folder


def _sgemm(made: MadeUpTables, order: int, name: str) -> None:
    rung = LADDER[name]
    status, reason = rung.bad
    for size in SIZES:
        flops = 2.0 * size**3
        us = flops / (rung.tflops * 1e6 * size / (size + 700) * 1.171)
        about = {"status": status, "reason": reason, "commit": CAMPAIGN.commit}
        made.measured("sgemm", name, str(size), size, us, flops, 12 * size**2, **about)
    facts = {"registers_per_thread": rung.registers, "static_shared_bytes": rung.shared}
    about = {
        "title": "FP32 matrix multiplication",
        "size_label": "matrix size n",
        "idea": rung.idea,
        "parent": list(LADDER)[order - 1] if order > 1 else "",
        "credit": "S. Boehm, CUDA matmul worklog" if name == "warptile" else "",
        "is_baseline": name == "cublas",
        "profile_cases": "1024,4096",
        "language": "cuda",
        "parameters": json.dumps(dict(rung.tiles)),
    }
    made.variant("sgemm", name, order, len(LADDER), "4096", **about, **facts)
    built = {**facts, "sass_FFMA": 64, "sass_LDG.E.128": 64}
    made.counted("sgemm", name, "", f"{name}_kernel", 0, built, tool="ptxas")
    for size in PROFILED if status == "ok" else ():
        values = _counters(rung, size)
        filled = {metric: value / 50 for metric, value in values.items()}
        made.counted("sgemm", name, str(size), "fill_zero", 0, filled)
        made.counted("sgemm", name, str(size), f"void {name}_kernel<8, 8>(float*)", 1, values)
        whole = {"nsys_duration_us": values["duration_us"] * 1.02}
        made.counted("sgemm", name, str(size), "", 0, whole, tool="nsys")


def _histogram(made: MadeUpTables, order: int, name: str, slow: float) -> None:
    for size in (1 << 20, 1 << 24):
        for data, skew in (("uniform", 1.0), ("skewed", 3.0)):
            us = size / 1e6 * slow * skew
            made.measured("histogram", name, f"{data}-{size}", size, us, math.nan, 4 * size)
    case = f"uniform-{1 << 24}"
    made.variant("histogram", name, order, 2, case, is_baseline=name == "cub", size_label="")
    made.counted("histogram", name, case, name, 0, {"dram_bytes": 4.0 * (1 << 24)})


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
