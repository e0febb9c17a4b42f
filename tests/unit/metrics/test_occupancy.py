import pytest

from captures import captured, needs_captures
from warplog.core.errors import WarplogError
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
