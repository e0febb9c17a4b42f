"""Sentences about what bounds a kernel: they claim only what its counters support."""

import math
from dataclasses import replace

import pytest
from warplog.worklog.sentences import bound_sentences, occupancy_sentences, traffic_sentences
from worklog_pages import told

from warplog.analysis.bounds import Bound, bound
from warplog.analysis.waits import Wait
from warplog.tables.regimes import LongRun

REGISTERS = Bound("a", "memory", "l2_throughput_pct", 71.0, "wait", 40.0, 25.0, 24.3, ("registers",))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("memory", "It is bound by L2, at 71 % of its peak."),
        ("latency", "No unit is near its peak; the busiest is L2, at 71 %. Latency is the likely bound."),
        ("near", "The busiest unit is L2, at 71 % of its peak."),
        (
            "atomics",
            "No unit is near its peak; the busiest is L2, at 71 %. Its global atomics contend for few addresses, and L2"
            " serialises those on one address.",
        ),
        ("launch", "No unit is near its peak; the busiest is L2, at 71 %. The grid does not fill the GPU."),
    ],
)
def test_the_ceiling_and_the_longest_state(kind, words):
    assert bound_sentences(Bound("a", kind, "l2_throughput_pct", 71.0, "wait", 40.0)) == (
        words,
        "The largest stall is wait (40 % of warp cycles): waiting for a fixed-latency dependency.",
    )


def test_the_occupancy_is_told_without_advice_that_the_accumulators_may_rule_out():
    assert occupancy_sentences(REGISTERS) == (
        "Theoretical occupancy is 25 %, limited by registers; achieved occupancy is 24.3 %.",
    )


def test_a_warp_that_is_ready_does_not_stall():
    values = {"stall_selected_pct": 50.0, "stall_not_selected_pct": 40.0, "stall_wait_pct": 6.0}
    found = bound("a", values | {"sm_throughput_pct": 90.0}, 132.0)
    assert bound_sentences(found)[1].startswith("The largest stall is wait (6.0 % of warp cycles)")


def test_the_limit_of_long_runs_comes_before_what_the_counters_of_one_launch_show():
    run = LongRun("sustained", 173.2, 203.4, "power", 1980.0, 1500.4, 695.2)
    told = bound_sentences(Bound("a", "compute", "pipe_tensor_pct", 90.4, long_run=run))
    assert told == (
        "Sustained, launches are limited by power: set SM clock 1980 → 1500 MHz at 695 W; 203.4 µs a launch, 1.17x the"
        " time at rest.",
        "At rest, it is bound by the tensor pipe, at 90.4 % of its peak.",
    )
    hot = LongRun("back to back", 173.2, 203.4, "power", at_rest=False)
    assert bound_sentences(Bound("a", "", gap="no_counters", gap_detail="n/a", long_run=hot)) == (
        "What bounds it is unknown: n/a.",
        "Back to back, launches are limited by power: 203.4 µs a launch, 1.17x the time with a cold L2.",
    )


def test_counters_of_a_launch_with_other_cycles_than_the_timed_ones_are_said_to_be():
    told = bound_sentences(Bound("a", "near", "l2_throughput_pct", 71.0, profiled_cycles=1.08))
    assert told[-1] == "The counters are of a launch that took 1.08x the cycles of the timed ones."
    assert len(bound_sentences(Bound("a", "near", "l2_throughput_pct", 71.0, profiled_cycles=1.02))) == 1
    told = bound_sentences(
        Bound("a", "near", "l2_throughput_pct", 71.0, profiled_cycles=0.597, copies_us=31.66)
    )
    assert told[-1] == "The counters describe its kernel only: copies take 31.66 µs of a launch."


def test_l2_and_device_memory_are_named_beside_each_other():
    told = bound_sentences(Bound("a", "memory", "dram_throughput_pct", 90.0, beside_pct=92.6))
    assert told == ("It is bound by device memory, at 90 % of its peak; the same bytes use 92.6 % of L2.",)
    told = bound_sentences(Bound("a", "near", "l2_throughput_pct", 82.4, beside_pct=65.5))
    assert told == ("The busiest unit is L2, at 82.4 % of its peak; device memory is at 65.5 %.",)
    told = bound_sentences(Bound("a", "atomics", "dram_throughput_pct", 0.3, beside_pct=2.4))
    assert "of L2" not in told[0], "atomics in L2 are no bytes of device memory"


def test_a_grid_of_less_than_a_wave_is_told_with_its_blocks():
    values = {"l2_throughput_pct": 21.2, "waves_per_sm": 0.015, "grid_blocks": 32.0}
    assert bound_sentences(bound("a", values, 132.0)) == (
        "No unit is near its peak; the busiest is L2, at 21.2 %. The grid does not fill the GPU: 32 blocks for 132 SMs"
        " (0.015 waves).",
    )


def test_an_occupancy_that_was_not_counted_is_left_out():
    some = Bound(
        "a",
        "memory",
        "l2_throughput_pct",
        71.0,
        theoretical_pct=25.0,
        limiters=("registers", "warps", "blocks"),
    )
    text = "Theoretical occupancy is 25 %, limited by registers, warps and blocks."
    assert occupancy_sentences(some) == (text,)
    whole = Bound(
        "a",
        "memory",
        "l2_throughput_pct",
        71.0,
        theoretical_pct=100.0,
        achieved_pct=98.7,
        limiters=("warps",),
    )
    text = "Theoretical occupancy is 100 %; achieved occupancy is 98.7 %."
    assert occupancy_sentences(whole) == (text,)


def test_a_gap_is_said_and_nothing_else():
    gap = Bound("a", "", gap="no_counters", gap_detail="n/a (denied)")
    assert bound_sentences(gap) == ("What bounds it is unknown: n/a (denied).",)
    assert occupancy_sentences(gap) == ()


def test_traffic_and_conflicts():
    values = {"dram_bytes": 8.519e9, "shared_wavefronts": 721e6, "shared_wavefronts_excess": 285e6}
    assert traffic_sentences(values, 201_326_592) == (
        "The kernel moves 8.52 GB to and from device memory, 42 times the compulsory 201 MB.",
        "Bank conflicts cause 40 % of its 721 M shared-memory wavefronts.",
    )
    assert traffic_sentences(values | {"shared_wavefronts_excess": 7e6}, math.nan) == ()
    assert len(traffic_sentences(values | {"instructions_executed": 7e9}, math.nan)) == 1
    few = traffic_sentences(values | {"instructions_executed": 8e10}, math.nan)
    assert few == (), "conflicts of a few accesses cost nothing"
    assert traffic_sentences({}, 1.0) == ()
    assert traffic_sentences({"shared_wavefronts": 0.0, "shared_wavefronts_excess": 0.0}, 1.0) == ()


def test_what_the_sentences_on_the_step_said_is_not_said_again():
    said = {"l2_throughput_pct", "theoretical_occupancy_pct", "dram_bytes", "shared_wavefronts", "barrier"}
    some = replace(REGISTERS, kind="near", stall="barrier", beside_pct=12.5)
    assert bound_sentences(some, said) == (
        "The busiest unit is L2; device memory is at 12.5 %.",
        "The largest stall is barrier (40 % of warp cycles).",
    )
    assert bound_sentences(replace(some, kind="latency"), said)[0] == (
        "No unit is near its peak; the busiest is L2. Latency is the likely bound."
    )
    assert "at 71 % of its peak" in bound_sentences(some, {"dram_throughput_pct"})[0], (
        "the use of another unit"
    )
    assert "waiting for a barrier" in bound_sentences(some, {"wait"})[1], "another state"
    wavefronts = replace(
        some, shared=721e6, beside_pct=math.nan, ceiling="l1_throughput_pct", ceiling_pct=76.0
    )
    assert bound_sentences(wavefronts, said)[0] == (
        "The busiest unit is L1/TEX, at 76 % of its peak, mainly through its shared-memory wavefronts."
    )
    assert "its 721 M shared-memory" in bound_sentences(wavefronts, {"wait"})[0]
    assert occupancy_sentences(some, said) == (
        "Theoretical occupancy is limited by registers; achieved occupancy is 24.3 %.",
    )
    assert occupancy_sentences(replace(some, limiters=()), said) == ("Achieved occupancy is 24.3 %.",)
    values = {"dram_bytes": 8.519e9, "shared_wavefronts": 721e6, "shared_wavefronts_excess": 285e6}
    assert traffic_sentences(values, 201_326_592, said) == (
        "Device-memory traffic is 42 times the compulsory 201 MB.",
        "Bank conflicts cause 40 % of its shared-memory wavefronts.",
    )


def test_an_achieved_occupancy_above_the_theoretical_one_is_explained_and_a_rounded_one_is_not():
    some = Bound(
        "a",
        "memory",
        "l2_throughput_pct",
        71.0,
        theoretical_pct=75.0,
        achieved_pct=75.9,
        limiters=("registers",),
    )
    text = (
        "Theoretical occupancy is 75 %, limited by registers; achieved occupancy is 75.9 % (more than theory allows:"
        " the counters are inexact)."
    )
    assert occupancy_sentences(some) == (text,)
    same = replace(some, achieved_pct=75.01)
    text = "Theoretical occupancy is 75 %, limited by registers; achieved occupancy is 75 %."
    assert occupancy_sentences(same) == (text,)


def test_a_busy_sub_unit_of_l1_is_not_told_as_its_bandwidth():
    """A quarter of L1's bytes: 32 of 128 per cycle and SM, although its busiest sub-unit is at 99 %."""
    values = {"l1_throughput_pct": 99.0, "l1_bytes": 32 * 132 * 1e6, "gpu_cycles": 1e6}
    assert bound_sentences(bound("a", values, 132.0)) == (
        "It is bound by L1/TEX, at 99 % of its peak (in its busiest part; global and local accesses use 25 %"
        " of its bandwidth).",
    )
    assert "bandwidth" not in bound_sentences(bound("a", values | {"l2_throughput_pct": 99.5}, 132.0))[0]
    assert "bandwidth" not in bound_sentences(bound("a", values, math.nan))[0], "the number of SMs is unknown"
    shared = values | {"shared_wavefronts": 100e6, "l1_bytes": 0.0}
    assert bound_sentences(bound("a", shared, 132.0)) == (
        "It is bound by L1/TEX, at 99 % of its peak, mainly through its 100 M shared-memory wavefronts.",
    )
    assert "shared" not in bound_sentences(bound("a", shared | {"shared_wavefronts": 1e6}, 132.0))[0]


def test_the_largest_stall_is_told_by_what_its_hot_line_waits_for():
    some = Bound("a", "near", "l2_throughput_pct", 71.0, "barrier", 45.0, wait=Wait("wgmma", "k.cu:7"))
    assert bound_sentences(some)[1] == (
        "The largest stall is barrier (45 % of warp cycles, mostly at the wgmma wait of k.cu:7): waiting for the tensor"
        " cores."
    )


@pytest.mark.parametrize(
    ("moved", "told"),
    [(110e6, "110 MB to and from device memory, 0.82 times"), (139e6, "139 MB to and from device memory, about"),
     (255e6, "255 MB to and from device memory, 1.9 times")],
)  # fmt: skip
def test_traffic_is_compared_with_the_compulsory_one_from_5_percent_on(moved, told):
    assert traffic_sentences({"dram_bytes": moved}, 134e6) == (
        f"The kernel moves {told} the compulsory 134 MB.",
    )


def test_a_page_explains_once_why_kernels_move_less_than_the_compulsory_traffic(recorded):
    note = (
        "A kernel that moves less than the compulsory traffic presumably leaves results in L2 when it ends."
    )
    assert note not in told(recorded).notes
    less = recorded.metrics["metric"] == "dram_bytes"
    metrics = recorded.metrics.assign(value=recorded.metrics["value"].where(~less, 1e6))
    assert note in told(replace(recorded, metrics=metrics)).notes


def test_launches_that_take_longer_back_to_back_at_the_same_clock_are_not_called_limited():
    same = LongRun("sustained", 36.5, 38.25, "", 1980.0, 1979.6, math.nan)
    assert bound_sentences(Bound("a", "memory", "l2_throughput_pct", 88.7, long_run=same)) == (
        "At rest, it is bound by L2, at 88.7 % of its peak.",
    )
    lowered = LongRun("sustained", 36.5, 40.0, "", 1980.0, 1800.0, math.nan)
    assert (
        "limited by an unknown cause: set SM clock 1980 → 1800 MHz"
        in bound_sentences(Bound("a", "", gap="no_counters", gap_detail="n/a", long_run=lowered))[1]
    )


def test_l1_counts_with_the_share_of_time_in_which_sms_are_active():
    """The counter of L1 refers to active cycles: 32 busy SMs of 132 do not use 88 % of all L1 caches."""
    values = {"l1_throughput_pct": 88.0, "l2_throughput_pct": 10.0, "waves_per_sm": 0.03}
    few = {"instructions_executed": 0.25 * 132 * 1e6, "ipc": 1.0, "gpu_cycles": 1e6}
    found = bound("a", values | few, 132.0)
    assert (found.kind, found.ceiling) == ("launch", "l1_throughput_pct")
    assert found.ceiling_pct == pytest.approx(22.0)
    assert bound("a", values, 132.0).ceiling_pct == 88.0, "the share is unknown"
