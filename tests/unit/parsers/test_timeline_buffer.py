"""The buffer of a marked kernel, from made-up bytes: clocks, alignment of the SMs, and what was lost."""

import numpy as np
import pytest

from made_up_launch import MHZ, SM_STARTS, STEP_NS, Buffer, gaps, pipelined
from warplog.core.errors import WarplogError
from warplog.metrics.tracks import REGIONS


def simple(events, **changes):
    made = Buffer({2: 5_000}, most_warps=4, **changes)
    made.warp(0, 2, 0, 0, 0, 100_000, events)
    return made


def test_warps_are_grouped_by_sm_and_those_without_regions_are_left_out():
    launch = pipelined().read()
    assert {sm: [t.warp for t in tracks] for sm, tracks in launch.tracks.items()} == {
        0: [0, 4, 5],
        7: [0, 4, 5],
    }
    assert (launch.blocks, launch.threads, launch.lost_events, launch.lost_warps) == (2, 192, 0, 0)


def test_upper_words_of_the_clock_are_restored_when_the_lower_word_wraps():
    assert SM_STARTS[0] < 2**32 < SM_STARTS[0] + 20_000
    first, second = (pipelined().read().tracks[sm][1] for sm in SM_STARTS)
    assert gaps(first.starts) == gaps(second.starts)
    assert first.begin == 0 < first.starts[0]
    assert first.starts[-1] < first.end


def test_sms_are_aligned_to_within_a_step_of_the_common_timer():
    launch = pipelined().read()
    assert launch.step_ns == STEP_NS
    assert launch.sm_mhz == pytest.approx(MHZ, rel=2 * STEP_NS / 1e3 / launch.span_us)
    late_us = launch.origin_us[7] - launch.origin_us[0]
    assert late_us == pytest.approx(600 / MHZ, abs=2 * STEP_NS / 1e3)
    assert min(launch.origin_us.values()) == 0


def test_an_sm_is_aligned_by_the_reading_of_the_common_timer_that_is_least_late():
    """A step is 56 clocks: one warp begins 55 clocks after a step, whose time is still shown."""
    made = Buffer({0: 1000, 1: 5000}, most_warps=4)
    for index, (sm, begin, end) in enumerate([(0, 0, 112_000), (0, 55, 56_000), (1, 560, 112_560)]):
        made.warp(index, sm, index, 0, begin, end, [(begin, "load")])
    launch = made.read()
    assert launch.sm_mhz == pytest.approx(MHZ)
    assert launch.origin_us[1] - launch.origin_us[0] == pytest.approx(560 / MHZ, abs=1e-3)


def test_events_beyond_the_part_of_a_warp_are_counted():
    events = [(100 * i, "wait" if i % 2 else "compute") for i in range(10)]
    launch = simple(events, most_events=8).read()
    (track,) = launch.tracks[2]
    assert (len(track.starts), track.lost, launch.lost_events, launch.events) == (8, 2, 2, 8)


def test_warps_beyond_the_buffer_are_counted():
    made = simple([(0, "load")])
    made.head["lost_warps"] = 3
    assert made.read().lost_warps == 3


@pytest.mark.parametrize("kernels", [0, 2])
def test_a_launch_of_several_marked_kernels_is_refused(kernels):
    made = simple([(0, "load")])
    made.head["kernels"] = kernels
    with pytest.raises(WarplogError, match=f"the launch ran {kernels} marked kernels"):
        made.read()


def test_a_warp_that_did_not_end_is_refused():
    made = simple([(0, "load")])
    made.warps["end_clock"] = 0
    with pytest.raises(WarplogError, match="did not reach the end of its TIMELINE_TRACK"):
        made.read()


def test_events_out_of_order_are_refused():
    made = simple([(500, "load"), (400, "wait")])
    with pytest.raises(WarplogError, match="block 0, warp 0: the clocks of its 2 events are not in order"):
        made.read()


def test_an_unknown_region_is_refused():
    made = simple([(500, "load")])
    made.events[0, 0]["region"] = len(REGIONS)
    with pytest.raises(WarplogError, match="region 8 is unknown"):
        made.read()


def test_a_launch_within_one_step_of_the_timer_is_refused():
    made = simple([(0, "load")])
    made.warps["end_ns"] = made.warps["begin_ns"]
    with pytest.raises(WarplogError, match="ends within one step of globaltimer; capture a larger case"):
        made.read()


def test_blocks_that_follow_each_other_on_an_sm_share_a_slot():
    made = Buffer({2: 5_000}, most_warps=8)
    for block, (begin, end) in enumerate([(0, 50_000), (10_000, 90_000), (60_000, 80_000)]):
        made.warp(block, 2, block, 0, begin, end, [(begin, "load")])
    launch = made.read()
    assert {t.block: t.slot for t in launch.tracks[2]} == {0: 0, 1: 1, 2: 0}
    assert launch.span_us == pytest.approx(90_000 / MHZ, abs=2 * STEP_NS / 1e3), "until the last warp ends"


def test_warps_that_did_not_run_are_no_tracks():
    made = simple([(0, "load")])
    assert np.count_nonzero(made.warps["begin_clock"]) == 1
    assert len(made.read().tracks[2]) == 1
