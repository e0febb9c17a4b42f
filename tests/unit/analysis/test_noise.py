"""What the same code shows: how it is estimated from few processes, and that the rule built on it holds."""

import math

import numpy as np
import pytest

from warplog.analysis.noise import (
    ASSUMED,
    DRIFT,
    DRIFT_US,
    Spread,
    estimate,
    median_variance,
    range_of_groups,
)
from warplog.analysis.verdicts import FASTER, SLOWER, judge


def drawn(random, us, spread, processes, drift=0.0):
    """Returns the times of one run whose processes share a drift."""
    return list(us * math.exp(random.normal(0, drift)) * np.exp(random.normal(0, spread, processes)))


def words(random, factor=1.0, count=200, drift=DRIFT, spreads=(0.001, 0.02)):
    """Returns the verdicts on two runs of cases with different spreads, each judged by its own processes."""
    verdicts = []
    us = {n: 10 ** random.uniform(1.5, 4) for n in range(count)}
    spread = {n: random.uniform(*spreads) for n in us}
    runs = [
        {n: [drawn(random, us[n] * by, spread[n], 3 + 12 * (n % 2), drift)] for n in us} for by in (1, factor)
    ]
    sides = [estimate(run)[0] for run in runs]
    for n in us:
        a, b = (side[n].timed(run[n]) for side, run in zip(sides, runs, strict=True))
        verdicts.append(judge(a, b).word)
    return verdicts


def test_the_same_code_is_hardly_ever_faster_or_slower():
    random = np.random.default_rng(1)
    verdicts = [word for _ in range(6) for word in words(random)]
    assert sum(word in (FASTER, SLOWER) for word in verdicts) <= 0.005 * len(verdicts)


def test_three_percent_are_found_between_quiet_cases():
    verdicts = words(np.random.default_rng(2), 1.03, spreads=(0.001, 0.003))
    assert verdicts.count(SLOWER) > 0.95 * len(verdicts)
    assert FASTER not in verdicts


def test_cases_lend_each_other_strength_as_far_as_they_are_alike():
    random = np.random.default_rng(3)
    alike, typical = estimate({n: [drawn(random, 100, 0.003, 3)] for n in range(60)})
    assert math.sqrt(typical.variance) == pytest.approx(0.003, rel=0.2)
    assert min(spread.freedom for spread in alike.values()) > 10
    wild, _ = estimate({n: [drawn(random, 100, 0.0005 if n % 2 else 0.05, 3)] for n in range(60)})
    quiet, loud = (np.median([wild[n].variance for n in range(60) if n % 2 == odd]) for odd in (1, 0))
    assert loud > 100 * quiet
    assert max(spread.freedom for spread in wild.values()) < 5


def test_the_prior_is_that_of_drawn_variances_and_has_its_weight_in_degrees_of_freedom():
    """Variances that follow a scaled inverse chi-squared distribution of 8 degrees, around (0.3 %)^2."""
    random = np.random.default_rng(8)
    deviations = np.sqrt(0.003**2 * 8 / random.chisquare(8, 3000))
    runs = {n: [drawn(random, 100, deviation, 3)] for n, deviation in enumerate(deviations)}
    found, typical = estimate(runs)
    prior = found[0].freedom - 2
    assert prior == typical.freedom == pytest.approx(8, rel=0.15)
    assert typical.variance == pytest.approx(0.003**2, rel=0.1)
    for n in (0, 1, 2):
        own = np.var(np.log(runs[n][0]), ddof=1)
        assert found[n].variance * (prior + 2) == pytest.approx(prior * typical.variance + 2 * own)


def test_equal_cases_have_the_degrees_of_freedom_of_all_of_them():
    found, typical = estimate({n: [[100.0, 101.0, 102.0]] for n in range(5)})
    own = np.var(np.log([100, 101, 102]), ddof=1)
    assert {spread.freedom for spread in found.values()} == {10.0} == {typical.freedom}
    assert [spread.variance for spread in found.values()] == pytest.approx([own] * 5)


def test_a_single_case_has_nothing_to_lean_on():
    spreads, typical = estimate({"only": [[100.0, 101.0], [102.0]], "of one process": [[5.0]]})
    assert spreads == {"only": typical}
    assert typical.freedom == 2
    assert typical.variance == pytest.approx(np.var(np.log([100, 101, 102]), ddof=1))
    assert estimate({"of one process": [[5.0]]}) is None


def test_the_noise_of_a_median_falls_with_its_processes_down_to_what_they_share():
    """By hand: 0.4487 of the variance for three processes; 0.3 % and 0.05 us shared by the processes of a run."""
    spread, shared = Spread(1e-4, 4), DRIFT**2 + (DRIFT_US / 10) ** 2
    three = spread.timed([[9.0, 10.0, 11.0]])
    assert three.us == 10
    assert three.noise.deviation == pytest.approx(math.sqrt(0.4487e-4 + shared))
    assert three.noise.freedom == pytest.approx(4 * (0.4487e-4 + shared) ** 2 / 0.4487e-4**2)
    many = spread.timed([[10.0] * 1000])
    assert many.noise.deviation == pytest.approx(math.sqrt(shared), rel=0.01)
    rounds = spread.timed([[10.0] * 1000] * 4)
    assert rounds.noise.deviation == pytest.approx(math.sqrt(shared / 4), rel=0.01)


def test_an_absolute_drift_matters_to_short_kernels_only():
    short, long = (ASSUMED.timed([[us] * 3]).noise.deviation for us in (2.0, 2000.0))
    assert short > DRIFT_US / 2
    assert long < 1.3 * DRIFT


def test_the_variance_of_a_median_is_that_of_drawn_medians():
    random = np.random.default_rng(12)
    for count, deviation in ((1, 0.02), (2, 0.02), (3, 0.02), (4, 0.02), (5, 0.02), (12, 0.02), (25, 0.05)):
        medians = np.median(random.standard_normal((100_000, count)), axis=1)
        assert median_variance(count) == pytest.approx(medians.var(), rel=deviation)


@pytest.mark.parametrize(
    ("processes", "ratio"),
    [
        ([134.0, 134.2, 134.4, 155.0, 273.9, 274.0, 274.2, 274.3], 274.3 / 134.0),
        ([37.5, 37.8, 41.2, 41.4, 41.5, 42.0, 42.1, 42.1, 42.3], 42.3 / 37.5),
        ([100.0, 100.1, 100.2, 100.3, 100.4, 100.5, 100.6, 100.7], 1),
        ([100.0, 100.1, 100.0, 100.1, 100.0, 107.0], 1),  # one process alone is no group
        ([100.0, 100.1, 200.0, 200.1], 1),  # too few to tell
        ([100.0, 100.0, 100.0, 100.001, 100.001, 100.001], 1),  # ticks of a clock
    ],
)
def test_two_groups_of_processes_are_told_from_a_spread(processes, ratio):
    assert range_of_groups(np.array(processes)) == pytest.approx(math.log(ratio))


def test_normal_spread_is_hardly_ever_taken_for_two_groups():
    random = np.random.default_rng(5)
    grouped = [range_of_groups(np.exp(random.normal(0, 0.01, 15))) > 0 for _ in range(2000)]
    assert np.mean(grouped) < 0.005
