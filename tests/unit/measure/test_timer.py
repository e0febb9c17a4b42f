"""When the timing core stops sampling, what it discards, and how long the hot graph is."""

import ctypes
import itertools
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from warplog.measure.worker import timer as timing
from warplog.measure.worker.timer import (
    ColdSample,
    StopRule,
    Timer,
    cold_batch,
    hot_plan,
    sample_throughout,
    sample_until,
    unthrottled,
)

RULE = StopRule(min_samples=10, max_samples=100, max_seconds=60, rel_spread=0.005)


def source(values: Callable[[int], float]) -> Callable[[int], list[ColdSample]]:
    counter = itertools.count()
    return lambda n: [ColdSample(values(next(counter)), 1980.0, True) for _ in range(n)]


def test_steady_times_stop_at_the_minimum_number() -> None:
    assert len(sample_until(source(lambda i: 100.0), RULE, batch=5)) == 10


def test_spread_that_settles_stops_before_the_limit() -> None:
    assert 30 <= len(sample_until(source(lambda i: 100.0 + 10 * (i % 5)), RULE, batch=10)) < 100


def test_a_steady_drift_counts_as_settled_once_three_batches_widen_the_spread_by_five_percent() -> None:
    """With evenly rising samples the quartiles are n / 2 steps apart; over three batches of ten, n grows by 20."""
    rule = replace(RULE, max_samples=1000, rel_spread=0.0)
    assert len(sample_until(source(lambda i: 1e6 + i), rule, batch=10)) == 410, (
        "20 of 400 is not yet below 5 %"
    )


def test_a_drift_that_widens_the_spread_by_a_fifth_never_settles() -> None:
    rule = replace(RULE, rel_spread=0.0)
    assert len(sample_until(source(lambda i: 1e6 + i), rule, batch=10)) == 100


def test_growing_spread_goes_on_to_the_limit() -> None:
    assert len(sample_until(source(lambda i: 100.0 + 1.3**i), RULE, batch=10)) == 100


def test_time_limit_keeps_at_least_three_samples() -> None:
    rule = StopRule(min_samples=10, max_samples=100, max_seconds=0, rel_spread=0.005)
    assert len(sample_until(source(lambda i: 1e6), rule, batch=1)) == 3


def test_a_moving_clock_is_sampled_all_the_time_and_the_kept_samples_span_it(monkeypatch) -> None:
    seconds = itertools.count(step=0.001)
    monkeypatch.setattr(timing.time, "monotonic", lambda: next(seconds))
    rule = StopRule(min_samples=10, max_samples=100, max_seconds=0.4, rel_spread=0.005)
    samples = [s.event_us for s in sample_throughout(source(float), rule, batch=20)]
    assert samples == [80.0 * i for i in range(100)], "400 batches: every 80th sample"


def test_a_launch_longer_than_the_time_limit_is_sampled_three_times() -> None:
    rule = StopRule(min_samples=10, max_samples=100, max_seconds=0, rel_spread=0.005)
    assert len(sample_throughout(source(lambda i: 1e6), rule, batch=1)) == 3


def test_throttled_samples_are_discarded_unless_there_are_too_many() -> None:
    fast, slow = ColdSample(1.0, 1900.0, True), ColdSample(2.0, 900.0, True)
    kept, discarded = unthrottled([fast] * 5 + [slow] * 2, default_mhz=1980)
    assert (kept, discarded) == ([fast] * 5, 2)
    kept, discarded = unthrottled([fast] * 11 + [slow] * 189, default_mhz=1980)
    assert (len(kept), discarded) == (200, 189), "a lasting power limit: all are kept"
    kept, discarded = unthrottled([slow] * 5, default_mhz=1980)
    assert (len(kept), discarded) == (5, 5)
    unknown = ColdSample(1.0, 0.0, True)
    assert unthrottled([unknown] * 4, default_mhz=1980) == ([unknown] * 4, 0)


def test_hot_graph_fills_the_configured_time_and_is_bounded() -> None:
    for estimate_us in (1.0, 10.0, 1e3, 1e5):
        launches, replays = hot_plan(estimate_us, seconds=0.2)
        assert launches * replays * estimate_us >= 0.2e6
        assert launches <= 500
        assert replays >= 5
    assert hot_plan(2.2e6, seconds=0.2) == (1, 1)


def test_batches_are_short_for_slow_kernels() -> None:
    assert cold_batch(2.2e6) == 1
    assert cold_batch(10.0) == 20


# The timing core without a GPU: each call records its name and the arguments that decide how it times.
CORE = """
#include <stdio.h>
#include <string.h>
typedef struct { float event_us, sm_mhz; int blocked; } Sample;
static char calls[4096];
static void add(const char* what, int a, int b) { sprintf(calls + strlen(calls), "%s %d %d;", what, a, b); }
const char* warplog_timer_calls(void) { return calls; }
int warplog_timer_create(void** out) { *out = calls; return 0; }
int warplog_timer_cold(void* t, void* f, void* a, int n, Sample* out, int block) {
    if (f) add("cold", block, n);
    for (int i = 0; i < n; ++i) { Sample s = {block ? 2 : 5, 1980, block}; out[i] = s; }
    return 0;
}
int warplog_timer_hot(void* t, void* f, void* a, int launches, int n, float* out) { add("hot", launches, n); return 0; }
int warplog_timer_batches(void* t, void* f, void* a, int launches, int n, float* out) {
    add("batches", launches, n);
    return 0;
}
const char* warplog_timer_error(int code) { return "error"; }
"""


@pytest.mark.parametrize(
    ("blocking", "calls", "empty_us"),
    [(True, "cold 1 7;hot 3 4;", 2.0), (False, "cold 0 7;batches 3 4;", 5.0)],
)
def test_launchers_that_synchronise_are_neither_blocked_nor_captured(
    tmp_path: Path, blocking: bool, calls: str, empty_us: float
) -> None:
    (tmp_path / "core.c").write_text(CORE)
    library = tmp_path / "timer.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "core.c"], check=True)
    timer = Timer(library, blocking)
    assert timer.empty_us == empty_us, "the empty interval is measured the same way"
    launcher = SimpleNamespace(function=ctypes.CDLL(None).abs)
    arguments = ctypes.c_int(0)
    assert {s.blocked for s in timer.cold(launcher, arguments, 7)} == {blocking}
    timer.hot(launcher, arguments, 3, 4)
    recorded = ctypes.CDLL(str(library)).warplog_timer_calls
    recorded.restype = ctypes.c_char_p
    assert recorded().decode() == calls
