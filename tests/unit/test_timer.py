"""When the timing core stops sampling, what it discards, and how long the hot graph is."""

import itertools
from collections.abc import Callable

from warplog.gpu.timer import ColdSample, StopRule, cold_batch, hot_plan, sample_until, unthrottled

RULE = StopRule(min_samples=10, max_samples=100, max_seconds=60, rel_spread=0.005)


def source(values: Callable[[int], float]) -> Callable[[int], list[ColdSample]]:
    counter = itertools.count()
    return lambda n: [ColdSample(values(next(counter)), 1980.0, True) for _ in range(n)]


def test_steady_times_stop_at_the_least_number() -> None:
    assert len(sample_until(source(lambda i: 100.0), RULE, batch=5)) == 10


def test_spread_that_settles_stops_before_the_limit() -> None:
    assert 30 <= len(sample_until(source(lambda i: 100.0 + 10 * (i % 5)), RULE, batch=10)) < 100


def test_growing_spread_goes_on_to_the_limit() -> None:
    assert len(sample_until(source(lambda i: 100.0 + 1.3**i), RULE, batch=10)) == 100


def test_time_limit_keeps_at_least_three_samples() -> None:
    rule = StopRule(min_samples=10, max_samples=100, max_seconds=0, rel_spread=0.005)
    assert len(sample_until(source(lambda i: 1e6), rule, batch=1)) == 3


def test_throttled_samples_are_discarded_but_never_all() -> None:
    fast, slow = ColdSample(1.0, 1900.0, True), ColdSample(2.0, 900.0, True)
    kept, discarded = unthrottled([fast] * 5 + [slow] * 2, default_mhz=1980)
    assert (kept, discarded) == ([fast] * 5, 2)
    kept, discarded = unthrottled([slow] * 5, default_mhz=1980)
    assert (len(kept), discarded) == (5, 5)
    unknown = ColdSample(1.0, 0.0, True)
    assert unthrottled([unknown] * 4, default_mhz=1980) == ([unknown] * 4, 0)


def test_hot_graph_fills_the_wanted_time_and_is_bounded() -> None:
    for estimate_us in (1.0, 10.0, 1e3, 1e5):
        launches, replays = hot_plan(estimate_us, seconds=0.2)
        assert launches * replays * estimate_us >= 0.2e6
        assert launches <= 500
        assert replays >= 5
    assert hot_plan(2.2e6, seconds=0.2) == (1, 1)


def test_batches_are_short_for_slow_kernels() -> None:
    assert cold_batch(2.2e6) == 1
    assert cold_batch(10.0) == 20
