"""Interval arithmetic compared with counting ticks, and the overlap of launches for which it is known."""

import itertools

import numpy as np
import pytest

from warplog.extract.trace import busy, common, overlap_metrics, union


def ticks(intervals):
    """Returns the integer ticks covered by at least one of the intervals."""
    return {t for start, end in intervals for t in range(start, end)}


@pytest.mark.parametrize("seed", range(20))
def test_intervals_agree_with_counted_ticks(seed):
    rng = np.random.default_rng(seed)
    some, others = (
        [(int(s), int(s + d)) for s, d in zip(rng.integers(0, 150, n), rng.integers(0, 40, n), strict=True)]
        for n in rng.integers(0, 12, 2)
    )
    assert busy(some) == len(ticks(some))
    assert common(some, others) == common(others, some) == len(ticks(some) & ticks(others))
    joined = union(some)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(joined))


def test_engines_that_take_turns_hide_nothing():
    metrics = overlap_metrics(kernels=[(10, 22)], to_device=[(0, 10)], to_host=[(22, 30)])
    assert metrics["wall_us"] == 30
    assert (metrics["kernel_us"], metrics["to_device_us"], metrics["to_host_us"]) == (12, 10, 8)
    assert metrics["copy_us"] == 18
    assert metrics["copy_hidden_pct"] == 0
    assert metrics["longest_engine_pct"] == pytest.approx(40)


def test_a_full_pipeline_is_as_long_as_its_longest_engine_and_two_pieces():
    pieces = range(10)
    to_device = [(10 * i, 10 * i + 10) for i in pieces]
    kernels = [(10 * i + 10, 10 * i + 20) for i in pieces]
    to_host = [(10 * i + 20, 10 * i + 30) for i in pieces]
    metrics = overlap_metrics(kernels, to_device, to_host)
    assert metrics["wall_us"] == 120
    assert metrics["longest_engine_pct"] == pytest.approx(100 * 100 / 120)
    assert metrics["copy_hidden_pct"] == pytest.approx(90), "the first piece in and the last one out are bare"
    assert metrics["copy_us"] == 120


def test_copies_in_both_directions_hide_each_other():
    metrics = overlap_metrics([], [(0, 10)], [(4, 14)])
    assert metrics["copy_us"] == 14
    assert metrics["copy_hidden_pct"] == pytest.approx(60)
    assert metrics["kernel_us"] == 0
