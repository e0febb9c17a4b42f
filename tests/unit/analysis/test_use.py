"""What a step changes in the use of units, in traffic, blocks per SM and waves."""

import pytest

from warplog.analysis.decomposition import Change, Use
from warplog.analysis.use import use

LIMITS = {f"occupancy_limit_{name}_blocks": 8.0 for name in ("warps", "registers", "shared_memory", "blocks")}
BEFORE = LIMITS | {
    "l2_throughput_pct": 85.0, "pipe_tensor_pct": 38.0, "l2_bytes": 3.69e9, "dram_bytes": 207e6,
    "issue_active_pct": 17.0, "theoretical_occupancy_pct": 100.0,
}  # fmt: skip
AFTER = LIMITS | {
    "l2_throughput_pct": 68.0, "pipe_tensor_pct": 44.0, "l2_bytes": 2.81e9, "dram_bytes": 199e6,
    "issue_active_pct": 11.0, "occupancy_limit_registers_blocks": 5.0, "theoretical_occupancy_pct": 62.5,
}  # fmt: skip


def test_fewer_larger_blocks_at_the_same_occupancy_are_not_told():
    larger = BEFORE | {"occupancy_limit_warps_blocks": 4.0}
    assert use(BEFORE, larger, 132.0).blocks is None


def test_the_busiest_unit_of_either_kernel_is_compared_but_never_l1_whose_sub_units_differ():
    before = {
        "sm_throughput_pct": 17.0,
        "dram_throughput_pct": 11.6,
        "l1_throughput_pct": 15.0,
        "dram_bytes": 271e6,
    }
    after = before | {"sm_throughput_pct": 18.6, "dram_throughput_pct": 85.0}
    changed = use(before, after, 132.0)
    assert changed.units == (Change("dram_throughput_pct", 11.6, 85.0),)
    assert use({"l1_throughput_pct": 81.9}, {"l1_throughput_pct": 90.9}, 132.0).units == ()


@pytest.mark.parametrize(
    ("waves", "fills"), [((0.015, 3.88), True), ((3.88, 0.5), True), ((0.9, 1.1), False), ((2.0, 8.0), False)]
)
def test_a_grid_that_fills_the_gpu_on_one_side_only_is_found(waves, fills):
    pair = [{"grid_blocks": 100 * count, "waves_per_sm": count} for count in waves]
    assert (use(*pair, 132.0).grid is not None) == fills


def test_what_does_not_change_or_was_not_counted_is_left_out():
    assert use(BEFORE, BEFORE, 132.0) == Use(idle=True)
    assert use({}, {}, 132.0) == Use()
