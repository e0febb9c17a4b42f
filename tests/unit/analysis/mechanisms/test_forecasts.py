"""What would help next: the model run forward from one kernel."""

from dataclasses import replace

import pytest

from made_up_work import gpu, work
from warplog.analysis.mechanisms.forecasts import forecasts
from warplog.analysis.mechanisms.model import Calibration
from warplog.analysis.verdicts import EXACT, Timed

ONLY = gpu(block_life_ns=0.0, block_starts_per_us=1e12, warp_starts_per_us=1e12, l2_gbytes_per_s=1e9)
ONE_RATE = gpu(block_life_ns=0.0, dram_copy_gbytes_per_s=3000.0)
LOADS = {"loads": 1e7, "load_bytes": 4.0}


def saved(launch, us, on=ONLY, **options):
    found = forecasts(launch, Timed(us, EXACT), on, Calibration(4.0, 0.2), **options)
    return {each.mechanism: each.prediction.saved_us for each in found}


@pytest.mark.parametrize(
    ("mechanism", "us", "share", "counts"),
    [
        ("bank_conflicts", 1000, 0.75, {"l1_wavefronts": 1e8, "shared_wavefronts": 1e8, "conflicts": 7.5e7}),
        ("coalescing", 3200, 28 / 32, {**LOADS, "load_sectors": 32e7, "l1_wavefronts": 32e7}),
        ("spills", 1000, 0.25, {"instructions": 4e8, "spills": 1e8}),
        ("atomics", 1000, 1.0, {"same_address": 1e6}),
        ("tail", 1000, 99 / 200, {"instructions": 4e8 * 101 / 200, "blocks": 101.0}),
        ("idle_sms", 1000, 0.75, {"instructions": 1e8, "blocks": 25.0}),
        ("idle_sms", 1000, 0.5, {"instructions": 4e6, "blocks": 1.0, "block_warps": 2.0}),
        ("barriers", 1000, 1.0, {"barriers": 8000 / 0.086 * 1000}),
    ],
)
def test_a_kernel_that_does_nothing_else_saves_what_mending_it_spares(mechanism, us, share, counts):
    assert saved([work(**counts)], us + 2)[mechanism] == pytest.approx(us * share)


def test_barriers_between_accesses_to_shared_memory_and_fences_are_taken_to_be_needed():
    assert saved([work(barriers=8e7, shared_accesses=1e5, fences=8e6)], 9000) == {}


def test_spills_save_their_lines_in_l2():
    spilling = work(spills=1e7, l2_requests=1e7, l2_sectors=4e7)
    assert saved([spilling], 202, on=gpu(block_life_ns=0.0))["spills"] == pytest.approx(200, rel=0.02)


def test_spills_save_the_sectors_of_their_width_and_their_bytes_of_device_memory():
    wide = work(spills=1e7, spill_bytes=8.0, l2_requests=2e7, l2_sectors=8e7)
    assert saved([wide], 402, on=gpu(block_life_ns=0.0))["spills"] == pytest.approx(400, rel=0.02)
    evicted = work(spills=1e7, spill_bytes=8.0, dram_read=1e9, dram_written=2e9)
    assert saved([evicted], 1002, compulsory_bytes=1e9)["spills"] == pytest.approx(1000 * 2 / 3)
    assert saved([evicted], 1002, compulsory_bytes=1e8)["spills"] == pytest.approx(1000 * 2.56 / 3)


def test_a_kernel_is_bound_by_a_unit_that_works_for_most_of_the_time():
    launch = [work(l1_wavefronts=2e8, shared_wavefronts=2e8, conflicts=2e7)]
    for us, bound in ((2002, "l1"), (4002, "")):
        (found,) = forecasts(launch, Timed(us, EXACT), ONLY, Calibration(4.0, 0.2))
        assert found.bound == bound


def test_several_kernels_could_be_one():
    assert saved([work(dram_read=3e6)] * 5, 20.0)["launches"] == pytest.approx(8)


def test_bytes_that_need_not_move_are_saved_down_to_the_compulsory_ones():
    assert saved([work(dram_read=3e9)], 1002, compulsory_bytes=1e9)["dram_bytes"] == pytest.approx(
        1000 * 2 / 3
    )
    assert saved([work(dram_read=3e9)], 1002, compulsory_bytes=3e9) == {}
    assert saved([work(dram_read=3e9)], 1002) == {}, "unknown"
    assert saved([work(dram_read=3e9, chases=True)], 1002, compulsory_bytes=1e9) == {}


@pytest.mark.parametrize(
    "own",
    [{"stores": 25e3, "store_bytes": 4.0, "store_sectors": 1e5}, {"atomic_sectors": 1e5}, {"spills": 25e3}],
)
def test_bytes_that_others_left_in_l2_to_be_written_are_not_the_kernels(own):
    """A third of the bytes is written, 3.2 MB of them by the kernel if that is counted."""
    moving = {"dram_read": 2e9, "dram_written": 1e9}
    assert "dram_bytes" not in saved([work(**moving, **own)], 1002, compulsory_bytes=2.0032e9)
    in_bulk = saved([work(**moving)], 1002, on=ONE_RATE, compulsory_bytes=2e9)
    assert in_bulk["dram_bytes"] == pytest.approx(1000 / 3)
    twice = saved([work(**moving, **own)], 1002, on=ONE_RATE, compulsory_bytes=1.0016e9)
    assert twice["dram_bytes"] == pytest.approx(500, rel=0.01)


def test_lanes_that_lie_apart_move_bytes_that_nobody_asked_for():
    apart = work(**LOADS, load_sectors=8e7, dram_read=8e7 * 32)
    spared = saved([apart], 2e3 + 2, compulsory_bytes=4e7 * 32)
    assert spared["coalescing"] == pytest.approx(1000)
    assert "dram_bytes" not in spared
    assert "coalescing" not in saved([replace(apart, l1_wavefronts=0.0)], 2e3 + 2, compulsory_bytes=8e7 * 32)
    twice = saved([apart], 2e3 + 2, compulsory_bytes=2e7 * 32)
    assert twice == pytest.approx({"coalescing": 1000, "dram_bytes": 1000}), "half by each"


def test_a_sector_that_is_written_in_part_is_read_first():
    apart = work(stores=1e7, store_bytes=4.0, store_sectors=8e7, dram_read=8e7 * 32, dram_written=8e7 * 32)
    spared = saved([apart], 2002, on=gpu(dram_copy_gbytes_per_s=3000.0), compulsory_bytes=4e7 * 32)
    assert spared["coalescing"] == pytest.approx(2000 * 3 / 4)


def test_blocks_that_are_too_few_are_divided_between_warps():
    """Each of 90 SMs has a block of 8 warps; were these spread over 100 SMs, some of them would still have 8."""
    assert "idle_sms" not in saved([work(instructions=1e8, blocks=90.0)], 1002)


def test_clusters_are_not_spread_over_sms_that_may_have_no_place_for_them():
    few = {"instructions": 1e8, "blocks": 25.0}
    assert "idle_sms" in saved([work(**few)], 1002)
    assert "idle_sms" not in saved([work(**few, multicasts=True)], 1002)


def test_loads_that_follow_pointers_cannot_be_joined_or_spread():
    narrow = {"loads": 4e8, "load_bytes": 4.0, "load_sectors": 16e8, "instructions": 8e8}
    assert "wide_accesses" not in saved([work(**narrow, chases=True)], 2002)
    one_warp = {"blocks": 1.0, "block_warps": 1.0, "resident": 1.0, "loads": 1e4, "in_flight": 1.0}
    assert saved([work(**one_warp, load_bytes=4.0, load_sectors=1e4, chases=True)], 4002) == {}


def test_wider_accesses_need_fewer_instructions_or_threads():
    narrow = {"loads": 4e8, "load_bytes": 4.0, "load_sectors": 16e8, "instructions": 8e8}
    assert saved([work(**narrow)], 2002)["wide_accesses"] == pytest.approx(2000 * 3 / 8)
    one_each = {"loads": 8e6, "load_bytes": 8.0, "load_sectors": 64e6, "blocks": 1e6, "resident": 1.0}
    starts = gpu(block_life_ns=0.0, warp_starts_per_us=1e12, l2_gbytes_per_s=1e9)
    assert saved([work(**one_each)], 1002, on=starts)["wide_accesses"] == pytest.approx(500, rel=1e-3)
    assert "wide_accesses" not in saved([work(**{**narrow, "load_sectors": 32e8})], 2002), "lanes lie apart"
    assert "wide_accesses" not in saved([work(**{**narrow, "load_bytes": 16.0, "load_sectors": 64e8})], 2002)


@pytest.mark.parametrize(("atomics", "share"), [(1e6, 0.5), (16e6, 0.0)])
def test_half_the_blocks_wait_at_half_the_barriers_and_add_half_their_sums(atomics, share):
    """Blocks of eight warps with a load each, half as wide as the widest; two additions a warp are not of its block."""
    one_each = {"loads": 8e6, "load_bytes": 8.0, "load_sectors": 64e6, "blocks": 1e6, "resident": 1.0}
    starts = gpu(block_life_ns=0.0, block_starts_per_us=1e12, warp_starts_per_us=1e12, l2_gbytes_per_s=1e9)
    adding = work(**one_each, atomics=atomics, same_address=1e6)
    assert saved([adding], 1002, on=starts).get("wide_accesses", 0.0) == pytest.approx(1000 * share, rel=1e-3)
    counting = work(**one_each, barriers=8e7)
    assert saved([counting], 1002, on=starts)["wide_accesses"] == pytest.approx(500, rel=1e-2)


@pytest.mark.parametrize(
    ("counts", "share"),
    [
        ({"stores": 1e6}, 0.75),  # a result of each block of eight warps
        ({"atomics": 1e6}, 0.75),
        ({"stores": 8e6}, 0.0),  # each element has a result
        ({"atomics": 8e6}, 0.0),
        ({"l2_sectors": 128e6}, 0.0),  # blocks work on what they copy
    ],
)
def test_fewer_blocks_that_combine_what_they_load_do_less(counts, share):
    """A word per lane; beside loading, exchanges in shared memory take a millisecond."""
    tree = {
        "l1_wavefronts": 1e8 + 8e6,
        "shared_wavefronts": 1e8,
        "conflicts": 5e7,
        "shared_accesses": 5e7,
        "instructions": 2e8,
        "pipe_cycles": {"lsu": 8e5},
    }
    one_each = {"loads": 8e6, "load_bytes": 4.0, "load_sectors": 32e6, "l2_sectors": 32e6, "blocks": 1e6}
    found = saved([work(**{**tree, **one_each, **counts})], 1082, on=ONLY)
    assert found.get("wide_accesses", 0.0) == pytest.approx(1000 * share, abs=10)


def test_wider_loads_leave_the_steps_between_barriers():
    """A tile of one load per thread and step has as many steps with wide loads, a tile of eight has fewer waits."""
    on = gpu(
        block_life_ns=0.0,
        block_starts_per_us=1e12,
        warp_starts_per_us=1e12,
        barrier_ns=1e-3,
        barrier_32_warps_ns=1e-3,
    )
    tile = work(
        **LOADS,
        load_sectors=4e7,
        in_flight=1.0,
        shared_accesses=2e7,
        barriers=2e7,
        l2_requests=1e6,
        l2_sectors=4e6,
    )
    assert "wide_accesses" not in saved([tile], 1e4, on=on)
    assert saved([replace(tile, barriers=25e5)], 1e4, on=on)["wide_accesses"] > 5e3
    assert saved([replace(tile, shared_accesses=0.0)], 1e4, on=on)["wide_accesses"] > 5e3


def test_the_best_comes_first_with_its_interval_and_the_bound_behind_it():
    launch = [work(l1_wavefronts=2e8, shared_wavefronts=2e8, conflicts=15e7, instructions=4e8, spills=1e8)]
    found = forecasts(launch, Timed(2202, EXACT), ONLY, Calibration(4.0, 0.2))
    assert [each.mechanism for each in found] == ["bank_conflicts", "spills"]
    assert found[0].bound == "issue"
    low, high = found[0].prediction.speedup_interval
    assert 1 < low < found[0].prediction.speedup < high


def test_nothing_helps_a_kernel_that_has_nothing_to_mend():
    assert saved([work(instructions=4e8, dram_read=1e9, **LOADS | {"load_bytes": 16.0})], 1100) == {}
