"""What bounds a kernel, in words: only what its counters support."""

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
        ("memory", "The nearest ceiling is L2, 71 % used: bound by on-chip memory."),
        ("latency", "No ceiling is near (the nearest is L2, 71 % used): latency is the first suspect."),
        ("launch", "No ceiling is near (the nearest is L2, 71 % used): the grid does not fill the GPU."),
    ],
)
def test_the_ceiling_and_the_longest_state(kind, words):
    bound = Bound("a", kind, "L2", 71.0, "wait", 40.0)
    assert bound_sentences(bound) == (
        words,
        "Issuing aside, its warps are longest in wait (40 % of their cycles), waiting for a fixed latency.",
    )


def test_what_would_lift_the_occupancy_is_said_where_the_hand_calculation_is_the_captured_one():
    told = occupancy_sentences(REGISTERS, launch(128, 256, 9216, 25.0), (9, 0))
    assert told == (
        "The launch can fill 25 % of an SM's warp slots, limited by registers; 24.3 % were filled.",
        "That is 16 warps per SM; 80 registers would allow 24.",
    )
    for values, capability in (
        ((128, 256, 9216, 50.0), (9, 0)),
        ((128, 256, math.nan, 25.0), (9, 0)),
        ((128, 256, 9216, 25.0), (3, 5)),
        ((128, 2048, 9216, 25.0), (9, 0)),
    ):
        assert len(occupancy_sentences(REGISTERS, launch(*values), capability)) == 1


def test_a_gap_is_said_and_nothing_else():
    gap = Bound("a", "", gap="n/a (denied)")
    assert bound_sentences(gap) == ("What bounds it is not known: n/a (denied).",)
    assert occupancy_sentences(gap, {}, (9, 0)) == ()


def test_traffic_and_conflicts():
    values = {"dram_bytes": 8.519e9, "shared_wavefronts": 721e6, "shared_wavefronts_excess": 285e6}
    assert traffic_sentences(values, 201_326_592) == (
        "It moves 8.52 GB to and from device memory, 42 times the compulsory 201 MB.",
        "Bank conflicts cause 40 % of its 721 M passes through shared memory.",
    )
    assert traffic_sentences(values | {"shared_wavefronts_excess": 7e6}, math.nan) == ()
    assert traffic_sentences({}, 1.0) == ()
    assert traffic_sentences({"shared_wavefronts": 0.0, "shared_wavefronts_excess": 0.0}, 1.0) == ()
