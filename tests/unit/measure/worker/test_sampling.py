"""The two regimes: when sampling at rest stops, what it discards and pauses for, and how long a sustained run lasts."""

import ctypes
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from warplog.measure.worker import sampling
from warplog.measure.worker.sampling import (
    StopRule,
    batch_plan,
    cold_batch,
    median_error,
    pause_after,
    run_hot,
    run_sustained,
    sample_at_rest,
    sample_until,
)
from warplog.measure.worker.timer import ColdSample

RULE = StopRule(min_samples=10, max_samples=100, max_seconds=60, rel_error=0.002)
FULL, LOW = 1980.0, 1500.0


def source(values: Callable[[int], float]) -> Callable[[int], list[ColdSample]]:
    counter = itertools.count()
    return lambda n: [ColdSample(values(next(counter)), FULL, FULL, True) for _ in range(n)]


class Board:
    """A timing core on a board whose clock falls while it is busy and recovers while it idles.

    Each microsecond of a launch takes one from the budget, and each microsecond of a pause gives `regained` back;
    below zero, the clock is low and launches take a third longer.
    """

    def __init__(self, launch_us: float, budget_us: float, regained: float = 1.0) -> None:
        self.launch_us, self.budget_us, self.left_us, self.regained = (
            launch_us,
            budget_us,
            budget_us,
            regained,
        )
        self.pauses: list[float] = []
        self.batches: list[tuple[int, int, float]] = []
        self.now_s = 0.0
        self.was_limited = False
        self.recoveries = 0

    def monotonic(self) -> float:
        return self.now_s

    def probe(self) -> float:
        return FULL if self.left_us >= 0 else LOW

    def is_full(self, mhz: float) -> bool:
        return mhz >= 0.99 * FULL

    def recover(self) -> bool:
        self.recoveries += 1
        if self.regained:
            self.left_us = self.budget_us
        return self.probe() == FULL

    def cold(self, _launcher: object, _arguments: object, count: int, pause_us: float) -> list[ColdSample]:
        return [self._launch(pause_us) for _ in range(count)]

    def _launch(self, pause_us: float) -> ColdSample:
        self.pauses.append(pause_us)
        self.left_us = min(self.budget_us, self.left_us + self.regained * pause_us)
        before = self.probe()
        us = self.launch_us * (1 if before == FULL else 4 / 3)
        self.left_us -= us
        self.now_s += (us + pause_us) * 1e-6
        return ColdSample(us, before, before, True)

    @contextmanager
    def batch(self, _launcher: object, _arguments: object, launches: int) -> Iterator[SimpleNamespace]:
        def run(count: int, pause_us: float = 0.0) -> tuple[list[float], float]:
            self.batches.append((launches, count, pause_us))
            taken = []
            for _ in range(count):
                samples = [self._launch(pause_us if i == 0 else 0.0) for i in range(launches)]
                taken.append(sum(s.event_us for s in samples) / launches)
            return taken, self.probe()

        yield SimpleNamespace(uncaptured="", run=run)


def at_rest(board: Board, rule: StopRule = RULE) -> sampling.ColdRun:
    return sample_at_rest(board, None, ctypes.c_int(0), rule, board.launch_us)


def test_steady_times_stop_at_the_minimum_number() -> None:
    assert len(sample_until(source(lambda i: 100.0), RULE, lambda: 5)) == 10


def test_noisy_times_are_sampled_until_the_median_is_precise() -> None:
    """Quartiles 1 % apart give a standard deviation of 0.74 %; 1.25 x 0.74 % / sqrt(n) is below 0.2 % from 22 on."""
    noisy = source(lambda i: 1000.0 + 10 * (i % 2))
    assert len(sample_until(noisy, RULE, lambda: 1)) == pytest.approx(22, abs=2)


def test_the_error_of_the_median_of_normal_samples_is_a_quarter_more_than_that_of_the_mean() -> None:
    from statistics import NormalDist

    values = [NormalDist(1000, 10).inv_cdf((i + 0.5) / 400) for i in range(400)]
    error = median_error([ColdSample(us, FULL, FULL, True) for us in values])
    assert error == pytest.approx(1.25 * 0.01 / 20, rel=0.01)


def test_very_noisy_times_stop_at_the_maximum_number() -> None:
    assert len(sample_until(source(lambda i: 100.0 + 1.3**i), RULE, lambda: 10)) == 100


@pytest.mark.parametrize(("launch_us", "samples"), [(7.9e3, 3), (1e5, 2), (2.2e6, 1)])
def test_the_time_limit_leaves_few_samples_of_long_launches(launch_us: float, samples: int) -> None:
    rule = replace(RULE, max_seconds=0)
    assert len(at_rest(Board(launch_us, budget_us=1e9), rule).kept) == samples


def test_without_a_limit_nothing_pauses_and_nothing_is_discarded() -> None:
    board = Board(launch_us=1000.0, budget_us=1e9)
    run = at_rest(board)
    assert (run.discarded, run.pause_us, run.held, set(board.pauses)) == (0, 0.0, False, {0.0})


def test_launches_at_a_low_clock_are_discarded_and_the_next_ones_pause() -> None:
    """The clock falls during the fifth of 20 launches: that one and the later ones are discarded."""
    board = Board(launch_us=1000.0, budget_us=4500.0)
    run = at_rest(board)
    assert {s.event_us for s in run.kept} == {1000.0}
    assert run.discarded == 16
    assert len(run.kept) >= 10
    assert board.pauses[:20] == [0.0] * 20
    assert set(board.pauses[20:]) == {run.pause_us} == {2000.0}


def test_a_clock_that_does_not_recover_keeps_all_samples_without_pauses() -> None:
    """A warm board that never reaches its first clock again: waiting for it would cost a second per batch."""
    board = Board(launch_us=1000.0, budget_us=-1.0, regained=0.0)
    run = at_rest(board)
    assert (run.held, run.discarded, set(board.pauses)) == (True, 0, {0.0})
    assert len(run.kept) >= 10
    assert board.recoveries == 1


def test_a_clock_that_stops_recovering_keeps_what_was_discarded_until_then() -> None:
    board = Board(launch_us=1000.0, budget_us=4500.0)
    board.recover = lambda: board.left_us > 0  # type: ignore[method-assign]
    run = at_rest(board)
    assert (run.held, run.discarded) == (True, 0)
    assert {s.set_mhz for s in run.kept} == {FULL, LOW}


def test_launches_that_lower_the_clock_themselves_are_kept_after_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A launch of a second after which the clock is always low, although it recovers each time."""
    board = Board(launch_us=1e6, budget_us=1e3)
    monkeypatch.setattr(sampling, "time", board)
    run = at_rest(board, replace(RULE, max_seconds=0.15))
    assert run.held
    assert len(run.kept) == 2


def test_after_a_limit_long_launches_pause_from_the_start_and_short_ones_do_not() -> None:
    for launch_us, pause_us in ((1000.0, 2000.0), (100.0, 0.0)):
        board = Board(launch_us, budget_us=1e9)
        board.was_limited = True
        assert at_rest(board).pause_us == pause_us
        assert set(board.pauses) == {pause_us}


def test_pauses_are_two_launches_long_within_bounds() -> None:
    assert [pause_after(us) for us in (1.0, 1000.0, 1e6)] == [1000.0, 2000.0, 50_000.0]


def test_batches_are_short_for_slow_kernels() -> None:
    assert cold_batch(2.2e6) == 1
    assert cold_batch(10.0) == 20


def test_batches_of_a_hot_run_fill_the_time_and_are_bounded() -> None:
    for estimate_us in (1.0, 10.0, 1e3, 1e5):
        launches, batches = batch_plan(estimate_us, seconds=0.2)
        assert launches * batches * estimate_us >= 0.2e6
        assert launches <= 500
        assert batches >= 5
    assert batch_plan(2.2e6, seconds=0.2) == (1, 1)


def test_a_hot_run_that_lowers_the_clock_is_repeated_in_short_bursts_at_rest() -> None:
    free = Board(launch_us=1000.0, budget_us=1e9)
    run = run_hot(free, None, None, 1000.0, 0.2)
    assert (run.limited, run.launches, free.batches) == (False, 220, [(20, 11, 0.0)])
    limited = Board(launch_us=1000.0, budget_us=1e5)
    run = run_hot(limited, None, None, 1000.0, 0.2)
    assert (run.limited, run.launches) == (True, 10)
    assert set(run.samples_us) == {1000.0}, "only the bursts count"
    assert limited.batches[1:] == [(2, 5, 4000.0)]
    assert limited.was_limited


def test_a_hot_run_of_no_length_is_a_few_bursts() -> None:
    board = Board(launch_us=100.0, budget_us=1e9)
    run = run_hot(board, None, None, 100.0, 0.0)
    assert (run.limited, run.launches, board.batches) == (False, 100, [(20, 5, 0.0)])


def sustained(
    monkeypatch: pytest.MonkeyPatch, clock: float = LOW, period_s: float = 0.1, least_s: float = 0.35
) -> tuple[sampling.SustainedRun, float]:
    """Returns a run on a board whose energy counter is updated every `period_s` (0: never), and when it had settled.

    The power is 700 W in the first 0.2 s of the measurement, and 650 W afterwards.
    """
    board = Board(launch_us=1000.0, budget_us=1e9)
    board.probe = lambda: clock
    monkeypatch.setattr(sampling, "time", board)
    settled: list[float] = []

    def energy_steps(begin: float, end: float) -> list[tuple[float, float, float]]:
        settled.append(begin)
        count = int((end - begin) / period_s) if period_s else 0
        edges = [begin + i * period_s for i in range(count + 1)]
        return [(a, b, 700.0 if a < begin + 0.19 else 650.0) for a, b in itertools.pairwise(edges)]

    sampler = SimpleNamespace(energy_steps=energy_steps)
    run = run_sustained(board, None, None, sampler, estimate_us=1000.0, settle_s=0.5, least_s=least_s)
    assert 0.5 <= run.begin_s < 0.7, "the board settles before"
    busy_s = run.launches * sum(run.samples_us) * 1e-6
    assert busy_s == pytest.approx(run.end_s - run.begin_s, rel=0.01), "the samples are those of the interval"
    return run, run.end_s - run.begin_s


def test_a_sustained_run_that_nothing_limits_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    _, seconds = sustained(monkeypatch, clock=FULL)
    assert 0.35 <= seconds < 0.5


def test_a_limited_run_has_four_steps_of_power_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    run, seconds = sustained(monkeypatch)
    assert 0.4 <= seconds < 0.6
    assert [power_w for power_w, _ in run.steps] == [700.0, 700.0, 650.0, 650.0]
    assert all(us == pytest.approx(4 / 3 * 1000) for _, us in run.steps), "the clock is low throughout"
    _, longer = sustained(monkeypatch, least_s=1.0)
    assert longer >= 1.0


def test_a_batch_belongs_to_the_step_in_which_its_middle_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 60 to 64 ms, the middles of which are at 30, 90.5, 152, 214.5 and 278 ms.

    The counter is updated every 0.1 s, 20 ms late: it shows the second and the third batch in its second step.
    """
    durations_us = [60_000.0, 61_000.0, 62_000.0, 63_000.0, 64_000.0]
    board = Board(launch_us=60_000.0, budget_us=1e9)

    def run(_count: int) -> tuple[list[float], float]:
        board.now_s += sum(durations_us) * 1e-6
        return durations_us, FULL

    monkeypatch.setattr(board, "batch", lambda *_: nullcontext(SimpleNamespace(run=run)))
    monkeypatch.setattr(sampling, "time", board)
    sampler = SimpleNamespace(
        energy_steps=lambda _begin, _end: [(0.1 * i, 0.1 * i + 0.1, 700.0) for i in range(3)]
    )
    found = run_sustained(board, None, None, sampler, estimate_us=60_000.0, settle_s=0.0, least_s=0.3)
    assert [us for _, us in found.steps] == [60_000.0, 61_500.0, 63_500.0]


def test_a_limited_board_without_an_energy_counter_is_measured_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, seconds = sustained(monkeypatch, period_s=0.0)
    assert sampling.SUSTAINED_MOST_S <= seconds < sampling.SUSTAINED_MOST_S + 0.2
    assert run.steps == []
