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


@pytest.mark.parametrize(("excess", "told"), [((2500.0, 400.0), True), ((2300.0, 400.0), False)])
def test_excess_wavefronts_count_if_they_take_two_percent_of_the_cycles_of_the_kernel_with_more(excess, told):
    """Of 100 SMs in 1000 cycles, 2 % are 2000 wavefronts."""
    names = ("shared_wavefronts_excess", "gpu_cycles")
    before, after = (dict(zip(names, one, strict=True)) for one in zip(excess, (1000.0, 4000.0), strict=True))
    there, back = use(before, after, 100.0).excess, use(after, before, 100.0).excess
    assert there == (Change(names[0], *excess) if told else None)
    assert back == (Change(names[0], *reversed(excess)) if told else None)


@pytest.mark.parametrize(("issuing", "idle"), [(28.0, True), (30.0, False), (19.0, True)])
def test_instructions_set_no_time_beside_a_unit_that_is_used_three_times_as_much(issuing, idle):
    one = {"issue_active_pct": issuing, "l2_throughput_pct": 85.0}
    assert use(one, one, 132.0).idle == idle
    assert not use(one, one | {"issue_active_pct": 80.0}, 132.0).idle


@pytest.mark.parametrize(
    ("l2", "dram", "told"),
    [
        (1.04, 1.4, []),
        (1.06, 1.4, ["l2_bytes"]),
        (1.04, 1.6, ["dram_bytes"]),
        (1 / 1.06, 1 / 1.6, ["l2_bytes", "dram_bytes"]),
    ],
)
def test_traffic_is_told_of_the_busiest_unit_from_five_percent_on_and_of_another_from_half(l2, dram, told):
    after = BEFORE | {"l2_bytes": BEFORE["l2_bytes"] * l2, "dram_bytes": BEFORE["dram_bytes"] * dram}
    assert [one.name for one in use(BEFORE, after, 132.0).traffic] == told


@pytest.mark.parametrize(("used_pct", "told"), [(0.002, []), (0.9, []), (1.1, ["dram_bytes"])])
def test_traffic_of_a_unit_that_is_not_in_use_is_not_told_even_if_it_is_the_busiest(used_pct, told):
    before = {"dram_throughput_pct": used_pct, "dram_bytes": 14.8e3}
    assert [one.name for one in use(before, before | {"dram_bytes": 13.6e3}, 132.0).traffic] == told


def test_what_does_not_change_or_was_not_counted_is_left_out():
    assert use(BEFORE, BEFORE, 132.0) == Use(idle=True)
    assert use({}, {}, 132.0) == Use()
