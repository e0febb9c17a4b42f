"""The one rule: which of two times is faster, which are the same, and what else is not excluded."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warplog.analysis.verdicts import (
    AMBIGUOUS,
    FASTER,
    SAME,
    SLOWER,
    TWO_GROUPS,
    WIDE,
    Noise,
    Timed,
    between,
    judge,
    judge_ratio,
    leading,
    tied,
)

OPPOSITE = {FASTER: SLOWER, SLOWER: FASTER, SAME: SAME, AMBIGUOUS: AMBIGUOUS}
noises = st.builds(
    Noise, st.floats(1e-4, 0.1), st.floats(1.0, 200.0) | st.just(math.inf), st.just(0.0) | st.floats(0.01, 1)
)
times = st.builds(Timed, st.floats(1.0, 1e6), noises)


def time(us, deviation=0.001, freedom=math.inf, groups=0.0):
    return Timed(us, Noise(deviation, freedom, groups))


def row(variant, us, deviation=0.001):
    return {"variant": variant, "median_us": us, "deviation": deviation, "freedom": 30.0, "groups": 0.0}


@given(times, times)
def test_swapping_the_sides_swaps_the_word_and_inverts_the_ratio(a, b):
    there, back = judge(a, b), judge(b, a)
    assert back.word == OPPOSITE[there.word]
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert (back.low, back.high) == pytest.approx((1 / there.high, 1 / there.low))
    assert (back.floor, back.reason) == (there.floor, there.reason)
    assert back.p == pytest.approx(there.p, abs=1e-9)


@given(times, times, st.sampled_from([0.5, 4.0, 1024.0]))
def test_other_units_give_the_same_verdict(a, b, scale):
    judged, scaled = judge(a, b), judge(*(Timed(time.us * scale, time.noise) for time in (a, b)))
    assert (scaled.word, scaled.ratio, scaled.floor) == (judged.word, judged.ratio, judged.floor)


@given(times, times)
def test_the_interval_contains_1_unless_one_is_faster(a, b):
    judged = judge(a, b)
    assert (judged.low <= 1 <= judged.high) == (judged.word in (SAME, AMBIGUOUS))


def test_the_floor_is_that_of_students_t():
    """By hand: t(0.999, 4 degrees) = 7.1732; two deviations of 0.1 % with 2 degrees each have 4."""
    noise = between(Noise(0.001, 2), Noise(0.001, 2))
    assert noise.freedom == pytest.approx(4)
    assert noise.gap() == pytest.approx(math.expm1(7.1732 * math.sqrt(2) * 1e-3), rel=1e-4)
    assert noise.p(1 + noise.gap()) == pytest.approx(0.002)
    assert judge(time(100.0, 0.001, 2), time(101.0, 0.001, 2)).floor == pytest.approx(noise.gap())


@pytest.mark.parametrize(
    ("after", "word"), [(100.0, SAME), (100.43, SAME), (100.45, SLOWER), (99.56, FASTER), (102.0, SLOWER)]
)
def test_a_gap_counts_from_the_floor_on(after, word):
    """By hand: 3.0902 * sqrt(2) * 0.1 % = 0.437 %."""
    assert judge(time(100.0), time(after)).word == word


def test_two_times_are_the_same_if_the_likely_gap_lies_within_the_margin():
    """By hand: 1.96 * sqrt(2) * 0.5 % = 1.39 %, and the floor is 2.2 %."""
    a, b = time(100.0, 0.005), time(100.5, 0.005)
    assert judge(a, b).word == SAME
    assert (judge(a, time(101.0, 0.005)).word, judge(a, b, 0.01).word) == (AMBIGUOUS, AMBIGUOUS)
    assert judge(a, b, 0.01).reason == WIDE


def test_processes_in_two_groups_hide_what_lies_within_their_range():
    grouped = time(100.0, groups=math.log(2))
    judged = judge(grouped, time(150.0))
    assert (judged.word, judged.reason) == (AMBIGUOUS, TWO_GROUPS)
    assert judged.floor == pytest.approx(1.0)
    assert judge(grouped, time(201.0)).word == SLOWER


def test_rows_are_tied_as_their_times_are_and_never_without_one():
    assert tied(row("a", 100.0), row("b", 100.3))
    assert not tied(row("a", 100.0), row("b", 101.0))
    assert not tied(row("a", 100.0), row("b", math.nan))
    assert not tied({}, {})


def test_a_row_without_a_floor_has_an_assumed_spread():
    """By hand: 3.0902 * sqrt(2) * 0.424 % = 1.85 %."""
    bare = {"median_us": 100.0, "deviation": math.nan}
    assert tied(bare, {"median_us": 101.8})
    assert not tied(bare, {"median_us": 101.95})


def test_the_fastest_leads_with_those_that_are_tied_with_it():
    rows = [row("a", 100.3), row("b", 100.0), row("c", 120.0), row("failed", math.nan)]
    assert leading(rows) == [True, True, False, False]
    assert leading([row("failed", math.nan)]) == [False]


def test_each_of_several_looks_gets_an_equal_share_of_the_probabilities():
    """0.002 of two sides are 3.09 standard deviations, and a quarter of it 3.48; 0.05 are 1.96, a quarter is 2.50."""
    noise = Noise(0.001)
    assert judge_ratio(1.0, 1.0, noise).floor == pytest.approx(math.expm1(0.00309), rel=2e-3)
    assert judge_ratio(1.0, 1.0, noise, looks=4).floor == pytest.approx(math.expm1(0.00348), rel=2e-3)
    assert judge_ratio(1.0, 1.0, noise, margin=0.0024).word == SAME
    assert judge_ratio(1.0, 1.0, noise, margin=0.0024, looks=4).word == AMBIGUOUS
    assert judge_ratio(1.0, 1.0033, noise, margin=0.005).word == SLOWER
    assert judge_ratio(1.0, 1.0033, noise, margin=0.005, looks=4).word == AMBIGUOUS
