"""When two times differ, and what a long run costs: rows with and without the columns of several processes."""

import math

import pytest

from warplog.tables import regimes

COLD = {"median_us": 100.0, "q1_us": 99.0, "q3_us": 101.0}
SUSTAINED = COLD | {
    "set_mhz": 1980.0, "sustained_us": 120.0, "sustained_sm_mhz": 1500.0, "sustained_power_w": 695.0,
    "limited_by": "power",
}  # fmt: skip


def test_a_regime_is_explained_only_if_a_time_is_slower_in_it():
    assert regimes.explained([COLD]) == ""
    both = regimes.explained([COLD, SUSTAINED])
    assert "at rest (single launches" in both
    assert "unless they are called sustained (without pauses, at a limit of the board" in both
    burst = SUSTAINED | {"limited_by": ""}
    assert "sustained" not in regimes.explained([burst])
    assert "unless they are called back to back (short bursts of launches" in regimes.explained([burst])
    assert regimes.explained([SUSTAINED, burst]).count(") or sustained (") == 1
    assert regimes.explained([SUSTAINED | {"sustained_us": 101.0}]).startswith(
        "Times and speeds are at rest: single"
    )
    unknown = regimes.explained([SUSTAINED | {"limited_by": "", "set_mhz": math.nan}])
    assert "unless they are called back to back" in unknown
    assert "at rest" not in unknown, "nobody knows the clock"


def test_the_range_between_processes_replaces_the_quartiles():
    wide = COLD | {"processes": 3, "process_min_us": 90.0, "process_max_us": 110.0}
    assert regimes.interval_us(wide) == (90.0, 110.0)
    assert regimes.interval_us(wide | {"processes": 1}) == (99.0, 101.0)
    assert regimes.interval_us(wide | {"processes": math.nan}) == (99.0, 101.0)


@pytest.mark.parametrize("q1_us", [-0.5, 0.0, math.nan])
def test_a_quartile_that_is_no_time_is_replaced_by_the_median(q1_us: float) -> None:
    assert regimes.interval_us(COLD | {"processes": 1, "q1_us": q1_us}) == (COLD["median_us"], 101.0)


def test_a_sustained_run_is_told_with_clock_power_and_limit():
    run = regimes.long_run(SUSTAINED)
    assert run == regimes.LongRun("sustained", 100.0, 120.0, "power", 1980.0, 1500.0, 695.0)
    assert run.factor == pytest.approx(100 / 120)
    assert regimes.long_run(SUSTAINED | {"sustained_us": 101.0}) is None
    assert regimes.at_rest([SUSTAINED])
    assert not regimes.at_rest([COLD])


def test_a_slower_run_that_reached_no_limit_is_back_to_back_and_not_sustained():
    run = regimes.long_run(
        SUSTAINED | {"limited_by": "", "sustained_sm_mhz": 1980.0, "sustained_power_w": math.nan}
    )
    assert run is not None
    assert (run.regime, run.limited_by, run.at_rest) == ("back to back", "", True)


def test_without_the_set_clock_a_long_run_is_not_beside_rest():
    run = regimes.long_run(SUSTAINED | {"set_mhz": math.nan})
    assert math.isnan(run.from_mhz)
    assert not run.at_rest


def test_without_a_sustained_time_there_is_no_long_run():
    assert regimes.long_run(COLD | {"hot_us": 114.0, "throttle_reasons": "sw_power_cap"}) is None
