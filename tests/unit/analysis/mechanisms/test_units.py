"""How long each unit works for a kernel: examples by hand."""

from dataclasses import replace

import pytest

from made_up_work import gpu, work
from warplog.analysis.mechanisms import units


@pytest.mark.parametrize(
    ("unit", "us", "counts"),
    [
        ("issue", 1000, {"instructions": 4 * 100 * 1e6}),
        ("fma", 500, {"pipe_cycles": {"fma": 0.5e6}}),
        ("l1", 1000, {"l1_wavefronts": 100 * 1e6}),  # one of 128 bytes per cycle and SM
        ("l2", 400, {"l2_requests": 10e6, "l2_sectors": 80e6}),  # of 32 bytes at 6.4 TB/s
        (
            "l2",
            200,
            {"l2_requests": 10e6, "l2_sectors": 10e6},
        ),  # ports of 64 bytes per cycle, a line for each
        ("l2", 400, {"l2_requests": 10e6, "l2_sectors": 10e6, "store_sectors": 10e6}),
        ("dram", 1000, {"dram_read": 3e9}),
        ("dram", 1500, {"dram_read": 1.5e9, "dram_written": 2e9}),  # in a copy both together reach 2.4 TB/s
        ("barrier_unit", 80, {"barriers": 8e6}),  # a ns for each warp of the blocks of an SM
        ("blocks", 50, {"blocks": 50_000}),
        ("warps", 4, {"blocks": 50_000}),
        ("atomics", 7, {"same_address": 7_000}),
        ("atomics", 21, {"same_address": 7_000, "adds_floats": True}),
    ],
)
def test_a_unit_takes_its_work_over_its_ceiling(unit, us, counts):
    assert units.unit_times(work(**counts), gpu())[unit] == pytest.approx(us)


def test_the_busiest_sm_decides():
    even, one_more, half = (work(instructions=4e6, blocks=blocks) for blocks in (1000, 101, 50))
    times = [units.unit_times(each, gpu())["issue"] for each in (even, one_more, half)]
    assert times == pytest.approx([10, 10 * 2 * 100 / 101, 20])


@pytest.mark.parametrize(
    ("us", "counts"),
    [
        (0.2, {}),
        (2.0, {"blocks": 10_000}),  # ten times ten blocks, one after the other
        (0.2, {"blocks": 1}),
        (0.4, {"blocks": 101, "resident": 1}),
        (0.2 + 5 * 0.014, {"barriers": 5 * 8000}),  # of a block of 8 warps: 10 ns for 4 and 38 for 32
        (0.2 + 2 * 0.5, {"fences": 2 * 8000}),
        (0.2 + 3 * 0.03, {"arrivals": 2 * 3 * 8000}),
        (0.2 + 100 * 0.004, {"dependent": 100 * 8000}),
        (0.2 + 2 * 0.4, {"loads": 8 * 8000, "in_flight": 4}),
        (0.2, {"loads": 8 * 8000}),  # loads in flight unknown
        (0.2 + 3 * 0.4 * 0.25, {"copies": 3 * 8000, "overlapped": 0.75}),
        (0.2, {"copies": 3 * 8000}),  # overlap unknown
    ],
)
def test_a_chain_is_what_a_warp_waits_for_times_the_blocks_after_each_other(us, counts):
    assert sum(units.chain(work(**counts), gpu()).values()) == pytest.approx(us)


@pytest.mark.parametrize(
    ("ns", "dram_read", "l1_hit"),
    [(400, 320e6, 0), (150, 0, 0), (20, 0, 1), (275, 160e6, 0), (210, 160e6, 1)],
)
def test_the_latency_of_a_load_is_that_of_the_levels_that_answer(ns, dram_read, l1_hit):
    loading = work(loads=2.5e6, load_sectors=10e6, dram_read=dram_read, l1_hit=l1_hit)
    assert units.latency(loading, gpu()) == pytest.approx(ns / 1e3)


def test_a_load_waits_for_the_slowest_of_its_sectors():
    """Lanes that lie apart bring sectors that hit behind those that come from device memory."""
    aligned = work(loads=2.5e6, load_sectors=10e6, load_bytes=4.0, dram_read=320e6)
    shifted = replace(aligned, load_sectors=12.5e6)
    assert units.latency(shifted, gpu()) == units.latency(aligned, gpu()) == pytest.approx(0.4)


def test_units_overlap_by_the_norm():
    both = work(instructions=4 * 100 * 3e6, l1_wavefronts=100 * 4e6)
    times = {unit: us for unit, us in units.unit_times(both, gpu()).items() if unit in ("issue", "l1")}
    assert units.norm(times, 2) == pytest.approx(5000)
    assert units.norm(times, 1) == pytest.approx(7000)
    assert units.norm(times, 50) == pytest.approx(4000, rel=1e-3)
    assert units.norm({**times, units.WAITS: 100}, 2) == pytest.approx(5100), "waits come on top"


@pytest.mark.parametrize("power", [1.0, 4.0])
def test_the_norm_follows_a_unit_by_its_slope(power):
    times = {"issue": 3.0, "l1": 4.0, units.WAITS: 2.0}
    for unit, slope in units.follows(times, power).items():
        longer = units.norm({**times, unit: times[unit] + 1e-6}, power)
        assert (longer - units.norm(times, power)) / 1e-6 == pytest.approx(slope, rel=1e-3)


def test_l1_serves_a_wavefront_per_cycle_where_its_bandwidth_was_not_measured():
    bare = gpu(l1_gbytes_per_s=float("nan"))
    assert units.unit_times(work(l1_wavefronts=100 * 1e6), bare)["l1"] == pytest.approx(1000)
    slower = gpu(l1_gbytes_per_s=6_400.0)
    assert units.unit_times(work(l1_wavefronts=100 * 1e6), slower)["l1"] == pytest.approx(2000)


def test_what_is_not_measured_or_not_counted_takes_no_time():
    bare = gpu(fence_ns=float("nan"), l2_gbytes_per_s=float("nan"))
    times = units.unit_times(work(fences=8000, l2_sectors=1e6, l1_wavefronts=float("nan")), bare)
    assert set(times) == {"blocks", "warps", "chain"}
    assert times["chain"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("times", "us"),
    [
        ({"dram": 3.0, "l2": 4.0}, 5.0),
        ({"dram": 3.0, "l2": 4.0, "waits": 2.0}, 7.0),  # a busy memory answers later
        (
            {"dram": 3.0, "waits": 2.0, "blocks": 12.0},
            13.0,
        ),  # few blocks wait at a time if they start so slowly
        ({"lsu": 3.0, "l1": 4.0}, 4.0),  # an access passes through both
        ({"lsu": 4.0, "l1": 2.0, "issue": 3.0}, 5.0),
        ({}, 0.0),
    ],
)
def test_units_overlap_in_part_and_some_follow_each_other(times, us):
    assert units.norm(times, 2.0) == pytest.approx(us)
    for unit, of in units.follows(times, 2.0).items():
        more = units.norm({**times, unit: times[unit] + 1e-6}, 2.0)
        assert of == pytest.approx((more - us) / 1e-6, abs=1e-5)


def test_what_is_multicast_holds_the_port_of_each_sm_that_receives_it():
    alone, several = (work(l2_requests=1e6, l2_sectors=1e6, received=received) for received in (1e6, 4e6))
    assert units.l2_us(several, gpu()) == pytest.approx(4 * units.l2_us(alone, gpu()))
