"""What blocks of turns say: drift cancels, outliers do not decide, and steps of the clock are averaged."""

import math

import numpy as np
import pytest

from warplog.duel import evidence
from warplog.duel.evidence import REST, Prior, blocks_of, estimate, found_in, looks_within, orders, step_of
from warplog.duel.timer import A, B, Turn


def turns(order: list[int], a_us: float, b_us: float, drift: float = 0.0) -> list[Turn]:
    """Returns turns whose times and clock grow by `drift` from each to the next."""
    return [
        Turn(side, (b_us if side == B else a_us) * (1 + drift * place), 1000.0 + place, True)
        for place, side in enumerate(order)
    ]


def test_a_steady_drift_cancels_in_both_orders() -> None:
    for swapped in (False, True):
        (block,) = blocks_of(turns(orders([swapped]), 100.0, 100.0, drift=0.01))
        assert block.b_us / block.a_us == pytest.approx(1.0, abs=1e-12)
        assert block.b_mhz == block.a_mhz
    assert orders([False, True]) == [A, B, B, A, B, A, A, B]


def test_a_ratio_is_that_of_b_to_a_whatever_the_order() -> None:
    found = found_in(blocks_of(turns(orders([True, False, False]), 100.0, 103.0)), 0.0)
    assert found["time"].log_ratio == pytest.approx(math.log(1.03))
    assert (found["a_us"], found["b_us"], found["blocks"]) == (100.0, 103.0, 3)


def test_cycles_are_those_of_the_clock_during_the_launch() -> None:
    """B takes 2 % longer only since its clock is 2 % lower."""
    taken = [
        Turn(side, 102.0 if side == B else 100.0, 1000.0 if side == B else 1020.0, True)
        for side in orders([False] * 4)
    ]
    found = found_in(blocks_of(taken), 0.0)
    assert found["time"].log_ratio == pytest.approx(math.log(1.02))
    assert found["cycles"].log_ratio == pytest.approx(0.0, abs=1e-12)
    unknown = [Turn(turn.side, turn.us, 0.0, True) for turn in taken]
    assert found_in(blocks_of(unknown), 0.0)["cycles"] is None


def test_a_few_launches_that_were_disturbed_do_not_decide() -> None:
    logs = np.random.default_rng(1).normal(0.002, 0.001, 1000)
    logs[::50] = 0.5
    assert estimate(logs, 0.0).log_ratio == pytest.approx(0.002, abs=3e-4)


def test_the_mean_resolves_a_fraction_of_a_step_of_the_clock() -> None:
    """Of a step that is 1 % of a launch: the median of such blocks would be 0 or a quarter of a step."""
    rng = np.random.default_rng(2)
    logs = 0.0025 * (rng.random(4000) < 0.3)
    assert estimate(logs, 0.01).log_ratio == pytest.approx(0.3 * 0.0025, rel=0.1)


def test_the_error_of_a_process_is_that_of_its_mean_also_if_neighbouring_blocks_are_alike() -> None:
    rng = np.random.default_rng(3)
    errors, means = [], []
    for _ in range(200):
        alike = np.repeat(rng.normal(0, 0.01, 100), 10)
        said = estimate(alike, 0.0)
        errors.append(said.error)
        means.append(said.log_ratio)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(means), rel=0.15)


def test_the_step_of_the_clock_is_the_smallest_difference() -> None:
    for us in (6.4, 812.3):
        times = [float(np.float32(us + 0.032 * step)) for step in (0, 1, 1, 3, 0, 2, 7, 4)]
        times += [float(np.nextafter(np.float32(one), np.float32(0))) for one in times]
        assert step_of([Turn(A, one, 0.0, True) for one in times]) == pytest.approx(0.032, rel=0.01)
    assert step_of([Turn(A, 5.0, 0.0, True)] * 4) == 0.0


def test_a_short_launch_needs_a_larger_gap() -> None:
    said = [evidence.Estimate(log_ratio=0.001, error=0.0)] * 3
    floors = [evidence.judge(said, us, Prior(2e-4, 0.002), 0.005, 1).floor for us in (1.0, 10.0, 1000.0)]
    assert floors[0] > 5 * floors[1] > 5 * floors[2]


@pytest.mark.parametrize(("seconds", "looks"), [(0.1, 1), (2.25, 1), (4.6, 2), (9.0, 3), (18.0, 4)])
def test_no_more_processes_than_the_seconds_allow(seconds: float, looks: int) -> None:
    assert looks_within(seconds, 0.75) == looks
    sizes = evidence.Rule(REST, 0.005, looks).sizes
    assert sizes[0] == 3
    assert sizes[-1] * 0.75 <= max(seconds, 2.25)
