"""Sentences about what bounds a kernel: they claim only what its counters support."""

import math

import pytest

from warplog.worklog.bounds import Bound
from warplog.worklog.sentences import LAUNCH, bound_sentences, occupancy_sentences, traffic_sentences

REGISTERS = Bound("a", "memory", "L2", 71.0, "wait", 40.0, 25.0, 24.3, ("registers",))


def launch(*values):
    return dict(zip(LAUNCH, values, strict=True))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("memory", "The closest ceiling is L2 at 71 %: bound by on-chip memory."),
        ("latency", "No ceiling is close (the closest is L2 at 71 %): latency is the likely bound."),
        ("launch", "No ceiling is close (the closest is L2 at 71 %): the grid does not fill the GPU."),
    ],
)
def test_the_ceiling_and_the_longest_state(kind, words):
    bound = Bound("a", kind, "L2", 71.0, "wait", 40.0)
    assert bound_sentences(bound) == (
        words,
        "Warps stall mostly on wait (40 % of their cycles), waiting for a fixed latency.",
    )


def test_what_would_lift_the_occupancy_is_said_where_the_hand_calculation_is_the_captured_one():
    told = occupancy_sentences(REGISTERS, launch(128, 256, 9216, 25.0), (9, 0))
    assert told == (
        "Theoretical occupancy is 25 %, limited by registers; achieved occupancy is 24.3 %.",
        "The launch allows 16 warps per SM; 80 registers would allow 24.",
    )
    for values, capability in (
        ((128, 256, 9216, 50.0), (9, 0)),
        ((128, 256, math.nan, 25.0), (9, 0)),
        ((128, 256, 9216, 25.0), (3, 5)),
        ((128, 2048, 9216, 25.0), (9, 0)),
    ):
        assert len(occupancy_sentences(REGISTERS, launch(*values), capability)) == 1


def test_a_warp_that_is_ready_is_not_said_to_stall():
    told = bound_sentences(Bound("a", "compute", "the FMA pipe", 71.0, "not_selected", 40.0))
    assert (
        told[1]
        == "Warps are most often ready while another warp issues (not_selected, 40 % of their cycles)."
    )


def test_an_occupancy_that_was_not_counted_is_left_out():
    some = Bound("a", "memory", "L2", 71.0, theoretical_pct=25.0, limiters=("registers", "warps", "blocks"))
    text = "Theoretical occupancy is 25 %, limited by registers, warps and blocks."
    assert occupancy_sentences(some, {}, (9, 0)) == (text,)
    whole = Bound("a", "memory", "L2", 71.0, theoretical_pct=100.0, achieved_pct=98.7, limiters=("warps",))
    text = "Theoretical occupancy is 100 %; achieved occupancy is 98.7 %."
    assert occupancy_sentences(whole, {}, (9, 0)) == (text,)


def test_a_gap_is_said_and_nothing_else():
    gap = Bound("a", "", gap="n/a (denied)")
    assert bound_sentences(gap) == ("What bounds it is unknown: n/a (denied).",)
    assert occupancy_sentences(gap, {}, (9, 0)) == ()


def test_traffic_and_conflicts():
    values = {"dram_bytes": 8.519e9, "shared_wavefronts": 721e6, "shared_wavefronts_excess": 285e6}
    assert traffic_sentences(values, 201_326_592) == (
        "It moves 8.52 GB to and from device memory, 42 times the compulsory 201 MB.",
        "Bank conflicts cause 40 % of its 721 M shared-memory wavefronts.",
    )
    assert traffic_sentences(values | {"shared_wavefronts_excess": 7e6}, math.nan) == ()
    assert traffic_sentences({}, 1.0) == ()
    assert traffic_sentences({"shared_wavefronts": 0.0, "shared_wavefronts_excess": 0.0}, 1.0) == ()
