"""The summary of samples against numbers worked out by hand."""

import math
from statistics import NormalDist

import pytest

from warplog.core.statistics import summarise


def test_five_samples_in_any_order_have_the_quartiles_in_second_and_fourth_place() -> None:
    summary = summarise([16.0, 1.0, 8.0, 2.0, 4.0])
    assert (summary.q1_us, summary.median_us, summary.q3_us) == (2.0, 4.0, 8.0)
    assert (summary.min_us, summary.max_us, summary.mean_us) == (1.0, 16.0, 6.2)
    assert summary.samples == 5


def test_quartiles_between_two_samples_are_interpolated() -> None:
    summary = summarise([1.0, 2.0, 3.0, 4.0])
    assert (summary.q1_us, summary.median_us, summary.q3_us) == (1.75, 2.5, 3.25)


@pytest.mark.parametrize(("mean", "deviation", "spread"), [(100.0, 1.0, 0.01), (50.0, 4.0, 0.08)])
def test_the_spread_of_normal_samples_is_their_relative_standard_deviation(
    mean: float, deviation: float, spread: float
) -> None:
    samples = NormalDist(mean, deviation).quantiles(2001)
    assert summarise(samples).rel_spread == pytest.approx(spread, rel=5e-3)


def test_a_third_of_stray_samples_does_not_move_the_median() -> None:
    summary = summarise([10.0] * 8 + [1000.0] * 4)
    assert summary.median_us == 10.0
    assert summary.mean_us == 340.0


def test_a_single_sample_is_its_own_summary_without_spread() -> None:
    summary = summarise([7.0])
    assert (summary.q1_us, summary.median_us, summary.q3_us, summary.rel_spread, summary.samples) == (
        7,
        7,
        7,
        0,
        1,
    )


@pytest.mark.parametrize("samples", [[-3.0, -2.0, -1.0], [-1.0, 0.0, 1.0]])
def test_a_spread_relative_to_no_time_is_zero(samples: list[float]) -> None:
    assert summarise(samples).rel_spread == 0.0


@pytest.mark.parametrize("samples", [[], [1.0, math.nan], [1.0, math.inf]])
def test_no_samples_and_samples_that_are_not_finite_are_refused(samples: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        summarise(samples)
