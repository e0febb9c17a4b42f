"""Made-up campaigns for the figures; no machine measured their numbers.

The sgemm ladder follows rates that were published for an H200 at 4096; everything else (sizes, spread,
counters, launches) follows simple formulas, so that figures can be drawn and tested without a GPU.
"""

from dataclasses import replace

import numpy as np

from made_up_tables import MadeUpTables
from warplog.tables.view import FigureTables

# name: (parent, GFLOP/s at 4096, registers, shared KiB, threads, n-way, DRAM FLOP/B, dominant stall)
SGEMM = {
    "naive": ("", 499, 32, 0, 1024, 1, 390, "lg_throttle"),
    "smem_tiled": ("naive", 9062, 38, 8, 1024, 1, 180, "mio_throttle"),
    "blocktile_2d": ("smem_tiled", 25948, 120, 8, 256, 4, 420, "short_scoreboard"),
    "vectorized": ("blocktile_2d", 31437, 128, 8, 256, 3, 440, "short_scoreboard"),
    "bank_swizzled": ("vectorized", 28042, 128, 8, 256, 1, 437, "mio_throttle"),
    "autotuned": ("vectorized", 31223, 168, 16, 256, 2, 480, "not_selected"),
    "warptile": ("autotuned", 36267, 168, 16, 128, 1.2, 500, "not_selected"),
    "split_k": ("warptile", 33120, 168, 16, 128, 1.2, 240, "long_scoreboard"),
    "cp_async_pipelined": ("warptile", 42870, 162, 48, 128, 1, 520, "math_pipe_throttle"),
    "tma_pipelined": ("cp_async_pipelined", 46020, 168, 96, 384, 1, 540, "barrier"),
    "best_of": ("tma_pipelined", 46020, 168, 96, 384, 1, 540, "barrier"),
    "cublas": ("", 51200, 202, 65, 128, 1.05, 690, "math_pipe_throttle"),
}
STALLS = [
    "selected", "not_selected", "long_scoreboard", "short_scoreboard", "mio_throttle", "lg_throttle",
    "barrier", "math_pipe_throttle", "wait", "dispatch_stall", "branch_resolving", "no_instruction", "drain",
    "imc_miss", "membar", "sleeping", "misc", "tex_throttle",
]  # fmt: skip
FEW = ("naive", "warptile", "cublas")  # for tests of files, which any figure would do for
SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384)


def sgemm(
    failed: dict | None = None, uncounted: tuple[str, ...] = (), names: tuple[str, ...] = ()
) -> FigureTables:
    """The ladder, or the variants `names` of it.

    `failed` is {variant or (variant, case): status}; counters of `uncounted` variants were denied.
    """
    failed, made = failed or {}, MadeUpTables()
    for name in names or SGEMM:
        parent, rate, *rest = SGEMM[name]
        order, status = list(SGEMM).index(name), failed.get(name, "ok")
        about = {"parent": parent, "is_baseline": name == "cublas", "profile_cases": "256,4096"}
        made.variant("sgemm", name, order, len(SGEMM), "4096", **about)
        for size in SIZES:
            _multiplied(made, name, order, size, rate, failed.get((name, str(size)), status))
        for case in ("256", "4096") if status == "ok" else ():
            _counters(made, "sgemm", name, case, rate, *rest, denied=name in uncounted)
            _launches(made, "sgemm", name, case, 2.0 * int(case) ** 3 / rate / 1e3)
    return made.tables(sgemm="cublas")


def vector_add(names: tuple[str, ...] = ("scalar", "float4", "grid_stride")) -> FigureTables:
    """A family that is bound by DRAM (1/12 FLOP/B) and has no baseline."""
    made = MadeUpTables()
    for order, name in enumerate(names):
        made.variant("vector_add", name, order, 3, "16Mi", parent=names[0] if order else "")
        for power in range(16, 28, 2):
            size = 2**power
            rate = (3.9e3 + 120 * order) * size / (size + 3e6) / 12
            case = "16Mi" if power == 24 else str(size)
            made.measured("vector_add", name, case, size, size / rate / 1e3, size, 12.0 * size)
        facts = (340 + order * 9, 16 + 4 * order, 0, 256, 1, 1 / 12, "long_scoreboard")
        _counters(made, "vector_add", name, "16Mi", *facts)
        _launches(made, "vector_add", name, "16Mi", 52.0 - order)
    return made.tables()


def twenty() -> FigureTables:
    """A ladder of twenty variants with long names, each 12 % faster than its parent, and one baseline."""
    made = MadeUpTables()
    names = [f"variant_with_a_long_name_{i:02d}" for i in range(19)] + ["library"]
    for order, name in enumerate(names):
        parent = names[order - 1] if 0 < order < 19 else ""
        made.variant("sgemm", name, order, 20, "4096", parent=parent, is_baseline=name == "library")
        rate = 6000 * 1.12**order
        for size in SIZES:
            _multiplied(made, name, order, size, rate)
        facts = (rate, 64, 8, 256, 1, 100 + 10 * order, STALLS[2 + order % 9])
        _counters(made, "sgemm", name, "4096", *facts)
        _launches(made, "sgemm", name, "4096", 2.0 * 4096**3 / rate / 1e3)
    return made.tables(sgemm="library")


def overlap() -> FigureTables:
    """Two variants that copy and compute: one after the other, and in three streams."""
    made = MadeUpTables()
    for name, streams in (("one_stream", 1), ("three_streams", 3)):
        free, engines = [0.0] * streams, dict.fromkeys(("Host-to-Device", "add", "Device-to-Host"), 0.0)
        for chunk in range(6):
            stream = chunk % streams
            for what, duration in zip(engines, (300.0, 180.0, 290.0), strict=True):
                start = max(free[stream], engines[what])
                free[stream] = engines[what] = start + duration
                made.event("vector_add", name, "16Mi", what, 13 + stream, start, duration)
    return replace(vector_add(("one_stream", "three_streams")), timeline=made.tables().timeline)


def _multiplied(made, name, order, size, rate, status="ok"):
    """Adds a case of a matrix multiplication with `rate` GFLOP/s at 4096; later rungs need larger problems."""
    share_4096, share = (1 / (1 + ((150 + 45 * order) / n) ** 2) for n in (4096, size))
    flops, moved = 2.0 * size**3, 16.0 * size**2
    reasons = {"wrong": "max error 3.1e+02 times the tolerance", "compile_error": "identifier undefined"}
    about = {"status": status, "reason": reasons.get(status, "")}
    us = flops / (rate * share / share_4096) / 1e3
    made.measured("sgemm", name, str(size), size, us, flops, moved, **about)


def _counters(
    made, family, name, case, rate, registers, shared, threads, ways, intensity, stall, denied=False
):
    """Adds one launch's metrics; a kernel that issues more often waits less, mostly in the state `stall`."""
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
    products = size**3 / 32
    values = {
        "instructions_executed": products * (1 + 3 / ways + 6e3 / rate), "inst_ffma": products,
        "inst_lds": products * shared / 160, "inst_iadd3": products * 2e3 / rate, "inst_imad": products * 1e3 / rate,
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
    lost = {"status": "denied", "reason": "ERR_NVGPUCTRPERM: no permission for counters"} if denied else {}
    values = dict.fromkeys(values, np.nan) if denied else values
    made.counted(family, name, case, f"{name}_kernel", 0, values, **lost)
    if name == "split_k":
        small = {metric: value * 0.02 for metric, value in values.items()}
        made.counted(family, name, case, "split_k_reduce", 1, small, **lost)


def _launches(made, family, name, case, us, count=10):
    clock = 1000.0
    parts = [(f"{name}_kernel", us * 0.7), ("split_k_reduce" if name == "split_k" else "finish", us * 0.26)]
    for launch in range(count):
        for kernel, duration in parts:
            took = duration * (1 + 0.004 * ((launch * 7) % 5))
            made.event(family, name, case, kernel, 7, clock, took)
            clock += took + 1.1 + (9.0 if launch == 3 else 0.0)
