import itertools
import subprocess

import pytest

from captures import captured, needs_captures
from warplog.core.errors import WarplogError
from warplog.machine import toolchain
from warplog.metrics import evaluate, occupancy_limiter
from warplog.metrics.occupancy import LIMITS, lift, theoretical
from warplog.parsers.ncu import report as ncu_rep

CAPTURES = captured(".ncu-rep")


@pytest.mark.parametrize(
    ("registers", "threads", "shared", "capability", "percent", "limiters"),
    [
        (32, 1024, 0, (9, 0), 100.0, {"warps", "registers"}),
        (37, 1024, 8192, (8, 6), 200 / 3, {"warps", "registers"}),
        (168, 384, 213_268, (9, 0), 18.75, {"registers", "shared_memory"}),
        (16, 32, 0, (8, 0), 50.0, {"blocks"}),
        (16, 32, 0, (8, 9), 50.0, {"blocks"}),
        (255, 128, 0, (9, 0), 12.5, {"registers"}),
        (32, 256, 48 * 1024, (7, 5), 25.0, {"shared_memory"}),
        (16, 1000, 0, (7, 0), 100.0, {"warps"}),
        (96, 32, 0, (9, 0), 31.25, {"registers"}),  # 5 warps in each sub-partition; 65536 registers hold 21
    ],
)
def test_known_launches(registers, threads, shared, capability, percent, limiters):
    occupancy = theoretical(registers, threads, shared, capability)
    assert occupancy.occupancy_pct == pytest.approx(percent)
    assert set(occupancy.limiters) == limiters


@pytest.mark.parametrize(
    ("capability", "warps", "blocks", "kib_per_block"),
    [
        ((7, 0), 64, 32, 96),
        ((7, 5), 32, 16, 64),
        ((8, 0), 64, 32, 163),
        ((8, 6), 48, 16, 99),
        ((8, 7), 48, 16, 163),
        ((8, 9), 48, 24, 99),
        ((9, 0), 64, 32, 227),
        ((10, 0), 64, 32, 227),
        ((10, 3), 64, 32, 227),
        ((12, 0), 48, 24, 99),
        ((12, 1), 48, 24, 99),
    ],
)
def test_an_sm_holds_what_the_table_of_the_programming_guide_says(capability, warps, blocks, kib_per_block):
    """NVIDIA, CUDA C++ Programming Guide, "Technical specifications per compute capability"."""
    small = theoretical(16, 32, 0, capability)
    assert (small.limit_warps_blocks, small.blocks_per_sm) == (warps, blocks)
    assert theoretical(16, 32, kib_per_block * 1024, capability).blocks_per_sm == 1
    assert theoretical(16, 32, kib_per_block * 1024 + 1, capability).blocks_per_sm == 0


_CALCULATOR = r"""
#include <cuda_occupancy.h>
#include <stdio.h>
int main(void) {
    int major, minor, registers, threads, warps, per_sm, per_block, reserved;
    long shared;
    while (scanf("%d %d %d %d %ld %d %d %d %d", &major, &minor, &registers, &threads, &shared, &warps, &per_sm,
                 &per_block, &reserved) == 9) {
        cudaOccDeviceProp gpu;
        cudaOccFuncAttributes kernel;
        cudaOccDeviceState state;
        cudaOccResult result;
        gpu.computeMajor = major, gpu.computeMinor = minor, gpu.warpSize = 32, gpu.numSms = 1;
        gpu.maxThreadsPerBlock = 1024, gpu.maxThreadsPerMultiprocessor = 32 * warps;
        gpu.regsPerBlock = gpu.regsPerMultiprocessor = 65536;
        gpu.sharedMemPerBlock = 49152, gpu.sharedMemPerMultiprocessor = per_sm;
        gpu.sharedMemPerBlockOptin = per_block, gpu.reservedSharedMemPerBlock = reserved;
        kernel.maxThreadsPerBlock = 1024, kernel.numRegs = registers;
        kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN, kernel.maxDynamicSharedSizeBytes = per_block;
        kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
        state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &gpu, &kernel, &state, threads, shared)) return 1;
        printf("%d\n", result.activeBlocksPerMultiprocessor);
    }
    return 0;
}
"""


@pytest.mark.nvcc
def test_blocks_per_sm_are_those_of_nvidias_calculator(tmp_path):
    """It is a header of the CUDA toolkit, with rules of its own per compute capability."""
    nvcc = toolchain.find("nvcc")
    if not nvcc.ok:
        pytest.skip(nvcc.remedy)
    source, program = tmp_path / "calculator.cpp", tmp_path / "calculator"
    source.write_text(_CALCULATOR)
    subprocess.run([*toolchain.nvcc_command(nvcc), "-o", program, source], check=True, timeout=120)
    shapes = itertools.product(
        (16, 33, 64, 96, 168, 255), (32, 96, 128, 384, 1024), (0, 1000, 49152, 99 * 1024)
    )
    launches = [
        (key, shape)
        for shape in shapes
        for key, limits in LIMITS.items()
        if shape[2] <= limits.shared_bytes_per_block
    ]
    lines = [
        (*key, *shape, of.warps, of.shared_bytes, of.shared_bytes_per_block, of.reserved_shared_bytes)
        for key, shape in launches
        for of in [LIMITS[key]]
    ]
    given = "\n".join(" ".join(map(str, line)) for line in lines)
    done = subprocess.run([program], input=given, capture_output=True, text=True, check=True, timeout=60)
    ours = [theoretical(*shape, key).blocks_per_sm for key, shape in launches]
    assert [int(word) for word in done.stdout.split()] == ours


@pytest.mark.parametrize(
    ("capability", "blocks"),
    [((8, 9), 0), ((9, 0), 16), ((10, 0), 16), ((10, 3), 8), ((12, 0), 8)],
)
def test_clusters_are_as_large_as_nvidia_documents(capability, blocks):
    assert LIMITS[capability].cluster_blocks == blocks


@pytest.mark.parametrize(
    ("registers", "threads", "shared"),
    [(32, 128, 228 * 1024), (256, 32, 0), (128, 1024, 0)],
)
def test_a_launch_that_does_not_fit_has_no_block(registers, threads, shared):
    assert theoretical(registers, threads, shared, (9, 0)).blocks_per_sm == 0


def test_a_smaller_carve_out_lowers_the_limit():
    assert theoretical(32, 256, 8192, (8, 6)).limit_shared_memory_blocks == 11
    assert theoretical(32, 256, 8192, (8, 6), 32 * 1024).limit_shared_memory_blocks == 3


def test_more_of_a_resource_never_gives_more_blocks():
    for capability in LIMITS:
        blocks = [theoretical(registers, 128, 0, capability).blocks_per_sm for registers in range(256)]
        assert blocks == sorted(blocks, reverse=True)


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        ((128, 256, 0), "16 warps per SM; 80 registers would allow 24"),
        ((16, 128, 40960), "20 warps per SM; 37888 bytes would allow 24"),
        ((16, 768, 0), "48 warps per SM; 800 threads would allow 50"),
        ((16, 32, 0), "32 warps per SM; 64 threads would allow 64"),
        ((16, 256, 0), ""),
    ],
)
def test_what_would_lift_a_limit_is_the_smallest_change_that_does(launch, words):
    assert lift(*launch, (9, 0)) == words


@pytest.mark.parametrize(("capability", "threads"), [((6, 1), 32), ((9, 0), 0), ((9, 0), 1025)])
def test_what_cannot_be_computed_is_refused(capability, threads):
    with pytest.raises(WarplogError):
        theoretical(32, threads, 0, capability)


@needs_captures
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_every_captured_launch_has_the_occupancy_that_ncu_computed(path):
    report = ncu_rep.read(path)
    old = int(report.tool_version[:4]) < 2022
    for launch in report.launches:
        c = launch.counters
        shared = c["launch__shared_mem_per_block_static"] + c["launch__shared_mem_per_block_dynamic"]
        shape = (int(c["launch__registers_per_thread"]), int(c["launch__block_size"]), int(shared))
        configured = None if old else int(c["launch__shared_mem_config_size"])
        occupancy = theoretical(*shape, launch.compute_capability, configured)
        assert occupancy.occupancy_pct == pytest.approx(c["sm__maximum_warps_per_active_cycle_pct"])
        for ours, theirs in (("warps", "warps"), ("registers", "registers"), ("blocks", "blocks")):
            assert getattr(occupancy, f"limit_{ours}_blocks") == c[f"launch__occupancy_limit_{theirs}"]
        assert occupancy.limit_shared_memory_blocks == c["launch__occupancy_limit_shared_mem"]
        values = {metric.metric: metric.value for metric in evaluate(c, launch.compute_capability)}
        assert set(occupancy_limiter(values)) <= set(theoretical(*shape, launch.compute_capability).limiters)
