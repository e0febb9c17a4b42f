"""Numbers from a made-up timeline whose waits and bubbles are known."""

import pytest

from made_up_launch import COMPUTED, MHZ, STEPS, STORED, TILES, lookback, pipelined
from warplog.metrics.tracks import REGIONS, Span, Track, bubbles, numbers, roles, shares, slots


@pytest.fixture(scope="module")
def ring():
    return pipelined().read().tracks[0]


def track(*events, end, warp=0, block=0, lost=0):
    starts, regions = (
        tuple(clock for clock, _ in events),
        tuple(REGIONS.index(region) for _, region in events),
    )
    return Track(0, block, warp, 0, 0, end, starts, regions, lost)


def test_roles_follow_from_the_regions(ring):
    role = roles(ring)
    assert [(t.warp, role(t)) for t in ring] == [(0, "producer"), (4, "consumer"), (5, "consumer")]
    scan = lookback().read().tracks[3]
    assert {roles(scan)(t) for t in scan} == {"worker"}
    alone = track((0, "wait"), (10, "lookback"), end=20, warp=1)
    assert roles([alone])(alone) == "look-back"


def test_the_producer_is_ahead_of_the_consumers_by_the_stages_of_the_ring(ring):
    summary = numbers(ring, MHZ)
    assert summary.lead_steps == 3  # four stages: one is read, three are requested
    assert 90 < summary.lead_pct < 100  # the last step of all has no further one
    assert summary.producer_wait_pct > 70


def test_bubbles_at_tile_ends_last_as_long_as_the_stores_and_no_step_is_starved(ring):
    summary = numbers(ring, MHZ)
    assert summary.bubbles == TILES - 1
    assert summary.bubble_us == pytest.approx(STORED / MHZ)
    busy = TILES * STEPS * COMPUTED
    assert summary.bubble_pct == pytest.approx(100 * 2 * STORED / (busy + 2 * STORED))
    assert summary.starved_pct == 0


def test_a_gap_without_a_store_is_starvation_and_no_bubble():
    """Another warp stores until the gap begins, and from its end on."""
    gap = track((0, "compute"), (60, "wait"), (80, "compute"), (100, "store"), end=150)
    found = numbers([gap, track((0, "store"), (60, "wait"), (80, "store"), end=100)], 1.0)
    assert (found.bubbles, found.bubble_us, found.starved_pct) == (0, None, 20.0)


def test_bubbles_have_their_median_length_and_their_share_of_the_time_between_computations():
    """Bubbles of 10, 20 and 60 clocks at 2 clocks per microsecond."""
    events = [(0, "compute"), (10, "store"), (20, "compute"), (30, "store"), (50, "compute"), (60, "store")]
    found = numbers([track(*events, (120, "compute"), end=180)], 2.0)
    assert (found.bubbles, found.bubble_us, found.bubble_pct) == (3, 10.0, 50.0)


def test_steps_whose_loads_were_not_recorded_have_no_lead():
    """The buffer held two of the four loads."""
    producer = track((0, "load"), (5, "load"), (8, "wait"), end=40, lost=2)
    consumer = track(*((10 * i, "compute") for i in range(1, 5)), end=50, warp=4)
    found = numbers([producer, consumer], 1.0)
    assert (found.lead_steps, found.lead_pct) == (0, 25.0)


def test_another_block_that_computes_fills_the_bubble():
    storing = track((0, "compute"), (50, "store"), (90, "compute"), end=120)
    other = track((40, "compute"), end=100, block=1)
    assert numbers([storing], 1.0).bubbles == 1
    assert numbers([storing, other], 1.0).bubbles == 0


def test_consumers_wait_for_the_share_of_time_between_request_and_arrival():
    load = track((0, "load"), (10, "wait"), end=400)
    consumer = track((0, "wait"), (100, "compute"), (300, "store"), end=400, warp=4)
    summary = numbers([load, consumer], 1.0)
    assert summary.consumer_pct == {"wait": 25.0, "compute": 50.0, "store": 25.0}
    assert summary.producer_wait_pct == 97.5


def test_look_back_waits_are_those_of_one_warp_per_block():
    summary = numbers(lookback().read().tracks[3], MHZ)
    assert summary.lookback_us == pytest.approx(2000 / MHZ)
    assert summary.consumer_pct["lookback"] == pytest.approx(100 * 2000 / (2 * 4450))
    assert (summary.bubbles, summary.lead_steps) == (None, None)


def test_a_kernel_without_regions_has_no_numbers():
    summary = numbers([], MHZ)
    assert (summary.region_us, summary.bubbles, summary.consumer_pct) == (None, None, {})


def test_regions_that_end_at_an_unknown_time_are_left_out():
    cut = track((0, "wait"), (10, "compute"), end=1000, lost=7)
    assert cut.spans == [Span("wait", 0, 10)]
    assert shares([cut]) == {"wait": 100.0}


def test_none_separates_regions():
    assert track((0, "compute"), (10, "none"), (30, "store"), end=40).spans == [
        Span("compute", 0, 10),
        Span("store", 30, 40),
    ]


def test_a_block_takes_the_first_slot_that_is_free():
    assert slots({5: (0, 10), 6: (2, 30), 7: (10, 20), 8: (12, 40)}) == {5: 0, 6: 1, 7: 0, 8: 2}


def test_bubbles_are_found_in_any_order_of_the_spans():
    spans = [Span("store", 12, 18), Span("compute", 20, 30), Span("compute", 0, 10)]
    assert bubbles(spans) == [(10, 20)]


def test_a_short_wait_of_another_warp_during_the_stores_is_no_bubble_of_its_own():
    storing = track((0, "compute"), (50, "store"), (120, "compute"), end=300)
    waiting = track((0, "compute"), (60, "store"), (100, "compute"), (105, "wait"), (110, "compute"), end=200)
    summary = numbers([storing, waiting], 1.0)
    assert (summary.bubbles, summary.bubble_us, summary.starved_pct) == (1, 40.0, 0.0)
