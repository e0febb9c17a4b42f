"""How a case is timed: settling, number of samples, length and trace of the hot run, and remarks."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

import fake_driver
from fake_driver import H200
from host_family import make_job
from warplog.catalog.contract import Measuring
from warplog.core.defaults import DEFAULTS
from warplog.machine import clocks
from warplog.measure.worker import time_case as timing
from warplog.measure.worker import timer as sampling
from warplog.measure.worker.backend import Launcher, NumpyBackend
from warplog.measure.worker.problem import Problem
from warplog.measure.worker.time_case import time_case
from warplog.measure.worker.timer import ColdSample, WarmUp

RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
LAUNCH_US = 1000.0
IDLE, POWER_CAP, HEAT = 0x1, 0x4, 0x40  # bits of nvmlClocksEventReasons


class Clock:
    """Stands in for the module `time`; only launches advance it."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


class Energy(fake_driver.Queue):
    """The answer to the last query of each reading of the sampler; counts the readings."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = threading.Semaphore(0)

    def pop(self, _index: int = 0) -> int:
        self.looks.release()
        return 5_000_000


class FakeTimer:
    """A kernel of one millisecond; the sampler takes three readings during the hot run."""

    def __init__(self, blocking: bool, empty_us: float, clock: Clock, energy: Energy) -> None:
        self.blocking = blocking
        self.empty_us = empty_us
        self._clock, self._energy = clock, energy
        self.hot_plan = (0, 0)
        self.warmed: list[tuple[int, float]] = []
        self.launched = 0

    def warm_up(self, _launcher: object, _arguments: object, launches: int, milliseconds: float) -> WarmUp:
        self.warmed.append((launches, milliseconds))
        return WarmUp(3, 5000.0, LAUNCH_US)

    def cold(self, _launcher: object, _arguments: object, count: int) -> list[ColdSample]:
        self.launched += count
        self._clock.now_s += count * LAUNCH_US * 1e-6
        return [ColdSample(LAUNCH_US + self.empty_us, 1900.0, self.blocking)] * count

    def hot(self, _launcher: object, _arguments: object, launches: int, replays: int) -> list[float]:
        for _ in range(3):
            assert self._energy.looks.acquire(timeout=30)
            self._clock.now_s += launches * replays * LAUNCH_US * 1e-6 / 4
        self.hot_plan = (launches, replays)
        return [LAUNCH_US] * replays


@pytest.fixture
def timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Returns a function that times the host family with other measurement options; it returns result and timer."""
    clock = Clock()
    for module in (clocks, timing, sampling):
        monkeypatch.setattr(module, "time", clock)

    def run(
        measuring: Measuring,
        blocking: bool = True,
        case: str = "64",
        default_mhz: float = 1950,
        reasons: int = 0,
        empty_us: float = 1.0,
        **settings: object,
    ) -> tuple[dict[str, object], FakeTimer]:
        energy = Energy()
        board = H200 | {"GetTotalEnergyConsumption": energy, "GetCurrentClocksEventReasons": reasons}
        fake_driver.install(monkeypatch, board)
        job = make_job(tmp_path, RIGHT)
        backend, timer = NumpyBackend(), FakeTimer(blocking, empty_us, clock, energy)
        family = replace(job.family, measuring=measuring)
        problem = Problem(backend.xp, family, family.case(case))
        launcher = Launcher(job.build_folder / "kernel.so", backend)
        return time_case(
            backend, launcher, timer, problem, {**DEFAULTS["time"], **settings}, default_mhz
        ), timer

    return run


def test_by_default_the_configuration_sets_the_hot_length_and_there_is_no_trace(timed) -> None:
    result, timer = timed(Measuring())
    launches, replays = timer.hot_plan
    assert 0.2 <= launches * replays * LAUNCH_US * 1e-6 < 0.3
    assert "trace" not in result
    assert result["reason"] == ""


def test_the_empty_interval_is_subtracted_from_cold_times_and_from_the_hot_estimate(timed) -> None:
    """Twenty launches of one millisecond form a graph of 20 ms; ten replays last 0.2 s, and one is added."""
    result, timer = timed(Measuring(), empty_us=9000.0)
    assert (result["cold"]["median_us"], result["cold"]["empty_us"]) == (1000.0, 9000.0)
    assert timer.hot_plan == (20, 11)


def test_cases_that_are_not_profiled_get_a_hot_time_only_on_request(timed) -> None:
    plain, _ = timed(Measuring(), case="1000")
    assert "hot" not in plain
    assert plain["cold"]["samples"] >= 10
    requested, _ = timed(Measuring(), case="1000", hot_cases="all")
    assert requested["hot"]["median_us"] == LAUNCH_US
    named, _ = timed(Measuring(hot_cases=["1000"]), case="1000")
    assert named["hot"]["median_us"] == LAUNCH_US
    long, _ = timed(Measuring(hot_seconds=0.5), case="1000")
    assert long["hot"]["median_us"] == LAUNCH_US


def test_a_low_clock_gets_time_to_settle(timed) -> None:
    _, free = timed(Measuring())
    assert free.warmed == [(3, 25)]
    _, capped = timed(Measuring(), default_mhz=1980.0)
    assert capped.warmed == [(3, 25), (1, DEFAULTS["time"]["settle_ms"])]
    assert timed(Measuring())[0]["cold"]["samples"] < 50
    _, unsettled = timed(Measuring(), default_mhz=1980.0, settle_ms=0)
    assert unsettled.warmed == [(3, 25)]


@pytest.mark.parametrize("reasons", [POWER_CAP, HEAT])
def test_a_clock_that_a_limit_moves_is_sampled_for_the_whole_time(timed, reasons: int) -> None:
    held, timer = timed(Measuring(), default_mhz=1980.0, max_seconds=0.5, reasons=reasons)
    assert held["cold"]["samples"] == DEFAULTS["time"]["max_samples"], "equal samples do not end it early"
    assert timer.launched > 2 * DEFAULTS["time"]["max_samples"]
    below, timer = timed(Measuring(), max_seconds=0.5, reasons=reasons)
    assert timer.launched == below["cold"]["samples"] < 50, "the clock is not low"


def test_a_low_clock_without_a_limit_is_taken_as_steady(timed) -> None:
    result, timer = timed(Measuring(), default_mhz=1980.0, reasons=IDLE)
    assert [launches for launches, _ in timer.warmed] == [3, 1]
    assert result["cold"]["samples"] < 50


def test_the_samples_that_showed_a_normal_clock_are_used(timed) -> None:
    result, timer = timed(Measuring())
    assert timer.launched == result["cold"]["samples"], "no launch is wasted: one may last seconds"


def test_a_family_may_set_a_shorter_sampling_time(timed) -> None:
    _, bounded = timed(Measuring(max_seconds=1e-9), default_mhz=1980.0, reasons=POWER_CAP)
    assert bounded.launched < DEFAULTS["time"]["max_samples"]


def test_a_long_hot_run_lasts_as_long_as_requested_and_keeps_its_trace(timed) -> None:
    result, timer = timed(Measuring(hot_seconds=1.5))
    launches, replays = timer.hot_plan
    assert launches * replays * LAUNCH_US * 1e-6 >= 1.5
    trace = result["trace"]
    assert len(trace["time_s"]) >= 3
    assert trace["time_s"] == sorted(trace["time_s"])
    assert 0 <= trace["time_s"][0] <= trace["time_s"][-1] <= launches * replays * LAUNCH_US * 1e-6
    assert set(trace["energy_j"]) == {5000.0}
    assert set(trace["sm_mhz"]) == {1755}
    assert {len(column) for column in trace.values()} == {len(trace["time_s"])}


def test_times_that_include_host_time_have_a_remark(timed) -> None:
    result, _ = timed(Measuring(timing="host"), blocking=False)
    assert result["reason"] == "with the host's part of each launch"
    assert result["cold"]["not_blocked"] == result["cold"]["samples"]
