"""Kernels on a GPU of 100 SMs at 1 GHz, on which a cycle takes a nanosecond."""

from warplog.analysis.mechanisms.ceilings import Ceiling, Gpu
from warplog.analysis.mechanisms.work import Work

SMS, MHZ = 100.0, 1000.0
CEILINGS = {
    "launch_us": 2.0,
    "block_life_ns": 200.0,
    "block_starts_per_us": 1000.0,
    "warp_starts_per_us": 100_000.0,
    "barrier_ns": 10.0,
    "barrier_32_warps_ns": 38.0,
    "mbarrier_ns": 30.0,
    "fence_ns": 500.0,
    "same_address_add_ns": 1.0,
    "same_address_float_add_ns": 3.0,
    "fma_latency_ns": 4.0,
    "l1_latency_ns": 20.0,
    "l2_latency_ns": 150.0,
    "dram_latency_ns": 400.0,
    "l1_gbytes_per_s": 12_800.0,
    "l2_gbytes_per_s": 6_400.0,
    "dram_gbytes_per_s": 3_000.0,
    "dram_copy_gbytes_per_s": 2_400.0,
}


def gpu(scale=1.0, spread=0.0, **ceilings):
    """The GPU on which everything takes `scale` times as long, measured with a relative spread."""
    values = {
        name: value / scale if name.endswith("_s") or "_per_" in name else value * scale
        for name, value in {**CEILINGS, **ceilings}.items()
    }
    return Gpu(SMS, {n: Ceiling(v, v * (1 - spread), v * (1 + spread)) for n, v in values.items()})


def work(**counts):
    """A kernel of 1000 blocks of 8 warps, 10 of them in each SM at a time, which do nothing but what is stated."""
    shape = {
        "sms": SMS,
        "mhz": MHZ,
        "blocks": 1000.0,
        "block_warps": 8.0,
        "resident": 10.0,
        "instructions": 0.0,
    }
    counted = {"l1_wavefronts": 0.0, "l2_requests": 0.0, "l2_sectors": 0.0}
    return Work(**{**shape, **counted, **counts})
