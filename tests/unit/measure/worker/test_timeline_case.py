"""What marks cost: builds with and without them take turns, and the empty interval is subtracted."""

from types import SimpleNamespace

import pytest

from warplog.measure.results import LaunchFailed
from warplog.measure.worker import timeline_case
from warplog.measure.worker.timer import ColdSample
from warplog.records.config import TimelineSettings

EMPTY_US = 9.0


def overhead(plain_us: float, marked_us: float) -> tuple[object, list[str]]:
    """Returns the times of three rounds of two samples each, and the builds in the order in which they ran."""
    ran: list[str] = []

    def cold(launcher: str, _arguments: object, count: int, _pause_us: float) -> list[ColdSample]:
        ran.append(launcher)
        us = {"plain": plain_us, "marked": marked_us}[launcher] + EMPTY_US
        return [ColdSample(us, 1980.0, 1980.0, True)] * count

    timer = SimpleNamespace(empty_us=EMPTY_US, recover=lambda: True, warm_up=lambda *_: None, cold=cold)
    settings = TimelineSettings(rounds=3, samples=2)
    problem = SimpleNamespace(arguments=None)
    return timeline_case._overhead("plain", "marked", timer, problem, settings), ran  # type: ignore[arg-type]


def test_each_build_comes_first_in_turn_and_times_are_without_the_empty_interval() -> None:
    found, ran = overhead(100.0, 103.0)
    assert ran == ["plain", "marked", "plain", "marked", "plain", "plain", "plain", "plain", "marked"]
    assert (found.plain_us, found.marked_us, found.again_us) == (100.0, 103.0, 100.0)
    assert (found.overhead_pct, found.noise_pct) == (pytest.approx(3.0), 0.0)
    assert found.marked_samples_us == (103.0,) * 6


def test_a_launch_that_takes_no_longer_than_the_empty_interval_has_no_overhead() -> None:
    with pytest.raises(LaunchFailed, match="too short to be timed"):
        overhead(0.0, 1.0)
