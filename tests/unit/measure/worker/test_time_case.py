"""How a case is timed in one process: at rest (cold and hot), the check afterwards, and sustained with its trace."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import fake_driver
from fake_driver import H200
from host_family import make_job
from warplog.catalog.contract import Measuring
from warplog.machine import clocks
from warplog.measure.results import AtRest, LaunchFailed, Sustained
from warplog.measure.worker import sampling
from warplog.measure.worker import time_case as timing
from warplog.measure.worker.backend import Launcher, NumpyBackend
from warplog.measure.worker.problem import Problem
from warplog.measure.worker.time_case import sustain_case, time_case
from warplog.measure.worker.timer import ColdSample, WarmUp
from warplog.records.config import TimeSettings

RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
LATER_WRONG = f"static int calls; if (++calls > 1) {{ a->y[0] = 0; return 0; }} {RIGHT}"
LAUNCH_US, EMPTY_US = 1000.0, 9000.0
FULL, LOW = 1980.0, 1500.0
PLAIN = Measuring()


class Clock:
    """Stands in for the module `time`; only launches advance it, and never during a reading of the sampler."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.pending_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


class Energy(fake_driver.Queue):
    """The answer to the last query of each reading of the sampler: 300 W, in steps of 0.1 s; counts the readings."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.looks = threading.Semaphore(0)

    def pop(self, _index: Any = 0) -> int:
        energy_mj = int(self.clock.now_s * 10) * 30_000
        self.clock.now_s += self.clock.pending_s
        self.clock.pending_s = 0.0
        self.looks.release()
        return energy_mj


class FakeTimer:
    """A kernel of one millisecond on a board whose clock is low after `free_s` seconds of back-to-back launches.

    The sampler takes a reading after every run of batches. `plan` holds launches, batches and pause of each run.
    """

    full_mhz = FULL
    uncaptured = ""

    def __init__(self, blocking: bool, free_s: float, clock: Clock, energy: Energy) -> None:
        self.blocking, self.empty_us = blocking, EMPTY_US
        self._free_s, self._clock, self._energy = free_s, clock, energy
        self.plan: list[tuple[int, int, float]] = []
        self.was_limited = False

    def is_full(self, mhz: float) -> bool:
        return mhz == FULL

    def probe(self) -> float:
        return FULL

    def recover(self) -> bool:
        return True

    def warm_up(self, launcher: Launcher, arguments: Any, launches: int, milliseconds: float) -> WarmUp:
        self.warmed = launches, milliseconds
        launcher(arguments)
        return WarmUp(3, 5000.0, LAUNCH_US)

    def cold(self, _launcher: object, _arguments: object, count: int, _pause_us: float) -> list[ColdSample]:
        self._clock.now_s += count * LAUNCH_US * 1e-6
        return [ColdSample(LAUNCH_US + EMPTY_US, 1755.0, FULL, self.blocking)] * count

    @contextmanager
    def batch(self, _launcher: object, _arguments: object, launches: int) -> Iterator[Any]:
        self._launches = launches
        yield self

    def run(self, batches: int, pause_us: float = 0.0) -> tuple[list[float], float]:
        self.plan.append((self._launches, batches, pause_us))
        busy_s = self._launches * batches * LAUNCH_US * 1e-6
        while self._energy.looks.acquire(blocking=False):
            pass
        self._clock.pending_s = busy_s
        for _ in range(
            3
        ):  # the first may come too early; the second advances the clock, and the third reads again
            assert self._energy.looks.acquire(timeout=30)
        return [LAUNCH_US] * batches, LOW if not pause_us and busy_s > self._free_s else FULL


class Bench:
    """Times the host family with other measurement options."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch
        self._clock = Clock()
        for module in (clocks, sampling, timing):
            monkeypatch.setattr(module, "time", self._clock)

    def _prepare(self, measuring: Measuring, case: str, body: str, blocking: bool, free_s: float) -> Any:
        energy = Energy(self._clock)
        fake_driver.install(self._monkeypatch, H200 | {"GetTotalEnergyConsumption": energy})
        self.timer = FakeTimer(blocking, free_s, self._clock, energy)
        job, backend = make_job(self._folder, body), NumpyBackend()
        family = structs.replace(job.family, measuring=measuring)
        problem = Problem(backend.xp, family, family.case(case))
        return backend, Launcher(job.build_folder / "kernel.so", backend), problem

    def rest(
        self,
        measuring: Measuring = PLAIN,
        case: str = "64",
        process: int = 1,
        body: str = RIGHT,
        blocking: bool = True,
        free_s: float = 60.0,
        **settings: Any,
    ) -> AtRest:
        backend, launcher, problem = self._prepare(measuring, case, body, blocking, free_s)
        policy = TimeSettings(**settings)
        with clocks.Sampler() as sampler:
            return time_case(backend, launcher, self.timer, problem, policy, sampler, process)  # type: ignore[arg-type]

    def sustained(
        self,
        measuring: Measuring = PLAIN,
        process: int = 1,
    ) -> Sustained:
        _, launcher, problem = self._prepare(measuring, "64", RIGHT, True, 0.0)
        with clocks.Sampler() as sampler:
            return sustain_case(launcher, self.timer, problem, sampler, 0.15, process)  # type: ignore[arg-type]

    def hot_seconds(self) -> float:
        """Returns the length of the hot run."""
        ((launches, batches, _),) = self.timer.plan
        return launches * batches * LAUNCH_US * 1e-6


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_the_empty_interval_is_subtracted_and_the_clocks_are_those_of_the_launches(bench: Bench) -> None:
    found = bench.rest()
    cold = found.cold
    assert (cold.median_us, cold.empty_us) == (LAUNCH_US, EMPTY_US)
    assert (cold.sm_mhz, cold.set_mhz, found.full_mhz) == (1755.0, FULL, FULL)
    assert (cold.discarded, found.held, found.pause_us, cold.not_blocked) == (0, False, 0.0, 0)
    assert cold.samples == len(cold.samples_us) == len(cold.sm_mhz_samples) >= 10


@pytest.mark.parametrize("shorter_us", [0.0, 0.1])
def test_a_case_as_short_as_the_empty_interval_has_no_time_and_says_why(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, shorter_us: float
) -> None:
    interval_us = EMPTY_US - shorter_us
    samples = [ColdSample(interval_us, 1755.0, FULL, True)] * 10
    monkeypatch.setattr(FakeTimer, "cold", lambda *_: samples)
    with pytest.raises(LaunchFailed) as failed:
        bench.rest()
    assert failed.value.status == "unsupported", "the campaign goes on, and the other cases count"
    assert f"{interval_us:.4g} us, is not longer than the empty one, {EMPTY_US:.4g} us" in failed.value.reason


def test_the_warm_up_is_as_configured(bench: Bench) -> None:
    result = bench.rest(warmup_launches=4, warmup_ms=7.0)
    assert bench.timer.warmed == (4, 7.0)
    assert (result.warmup_launches, result.first_launch_us) == (3, 5000.0)


def test_the_first_process_runs_hot_for_the_configured_time_and_the_others_in_short_bursts(
    bench: Bench,
) -> None:
    """Twenty launches of one millisecond form a batch of 20 ms."""
    bench.rest(hot_seconds=1.0)
    assert bench.hot_seconds() == pytest.approx(1.0, abs=0.021)
    bench.rest(hot_seconds=1.0, process=2)
    assert bench.timer.plan == [(2, 5, 0.0)], "bursts of 2 ms"


def test_a_hot_run_that_lowers_the_clock_says_so_and_is_taken_in_bursts(bench: Bench) -> None:
    assert bench.rest().limited is False
    braked = bench.rest(free_s=0.05)
    assert braked.limited is True
    assert bench.timer.plan[-1][2] > 0, "bursts have pauses"
    assert braked.hot.median_us == LAUNCH_US


def test_cases_that_are_not_profiled_get_a_hot_time_only_on_request(bench: Bench) -> None:
    plain = bench.rest(case="1000")
    assert (plain.hot, plain.no_hot, plain.limited) == (None, "not_captured", False)
    assert bench.timer.plan == []
    for measuring, settings in (
        (Measuring(), {"hot_cases": "all"}),
        (Measuring(hot_cases=("1000",)), {}),
        (Measuring(hot_seconds=0.5), {}),
    ):
        found = bench.rest(measuring, case="1000", **settings)
        assert (found.hot.median_us, found.no_hot) == (LAUNCH_US, "")


def test_a_process_beyond_the_configured_ones_takes_few_samples_and_no_hot_time(bench: Bench) -> None:
    found = bench.rest(rel_error=0.0, process=4, processes=3, min_samples=5)
    assert (found.cold.samples, found.hot, bench.timer.plan) == (5, None, [])
    last = bench.rest(rel_error=0.0, process=3, processes=3, min_samples=5, max_samples=40)
    assert (last.cold.samples, last.hot is None) == (40, False)


def test_a_family_may_set_a_shorter_sampling_time(bench: Bench) -> None:
    """Samples with equal times never reach an error of 0."""
    long = bench.rest(rel_error=0.0, max_samples=1000).cold.samples
    short = bench.rest(Measuring(max_seconds=0.03), rel_error=0.0, max_samples=1000).cold.samples
    assert short < long < 1000


def test_samples_that_include_host_time_are_counted(bench: Bench) -> None:
    cold = bench.rest(Measuring(timing="host"), blocking=False).cold
    assert cold.not_blocked == cold.samples


def test_a_kernel_whose_results_are_wrong_after_timing_gets_no_time(bench: Bench) -> None:
    with pytest.raises(LaunchFailed, match=r"^after timing: ") as wrong:
        bench.rest(body=LATER_WRONG)
    assert wrong.value.status == "wrong"


def test_only_the_first_process_checks_the_results_again(bench: Bench) -> None:
    assert 0 < bench.rest().max_error_over_scale <= 2.0**-24, "the product is rounded once"
    later = bench.rest(body=LATER_WRONG, process=2)
    assert (later.cold.samples > 0, later.max_error_over_scale) == (True, None)


def test_a_sustained_run_has_the_mean_time_clock_and_power_after_settling(bench: Bench) -> None:
    result = bench.sustained()
    run = result.run
    assert (run.mean_us, run.sm_mhz, list(run.limits)) == (LAUNCH_US, 1755, [])
    long = bench.sustained(Measuring(hot_seconds=2.0)).run
    assert long.power_w == pytest.approx(300, rel=0.05)
    assert len(run.steps) >= 4
    assert {us for _, us in run.steps} == {LAUNCH_US}
    assert run.launches * LAUNCH_US * 1e-6 == pytest.approx(run.seconds)
    everything = sum(launches * batches for launches, batches, _ in bench.timer.plan)
    assert everything - run.launches >= 150, "launches of the first 0.15 s do not count"
    assert (result.trace, result.samples_us) == (None, ())


def test_a_family_with_long_hot_runs_keeps_the_trace_of_the_first_process(bench: Bench) -> None:
    family = Measuring(hot_seconds=2.0)
    result = bench.sustained(family)
    trace, run = result.trace, result.run
    assert run.seconds >= 2
    assert len(trace.time_s) >= 10
    assert list(trace.time_s) == sorted(trace.time_s)
    assert 0 <= trace.time_s[0] <= trace.time_s[-1] <= run.seconds
    assert {len(getattr(trace, name)) for name in trace.__struct_fields__} == {len(trace.time_s)}
    assert set(trace.sm_mhz) == {1755}
    assert run.launches % len(result.samples_us) == 0
    short = bench.sustained(family, process=2)
    assert short.trace is None
    assert short.run.seconds < 2
