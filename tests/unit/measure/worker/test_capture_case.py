"""What a profiler captures of a case: only the requested launches, in the ranges that extraction expects."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from host_family import make_job
from warplog.measure.results import Captured
from warplog.measure.task import CaptureWork
from warplog.measure.worker import capture_case
from warplog.measure.worker.backend import Launcher, NumpyBackend
from warplog.measure.worker.problem import Problem

RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"


class Clock:
    """Stands in for the module `time`; only sleeping advances it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


class RecordingBackend(NumpyBackend):
    """Runs host functions and records the calls of the parts of cupy.cuda that a capture uses."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.calls: list[str] = []
        numpy = self.xp
        event = SimpleNamespace(record=lambda: None, synchronize=lambda: None)
        cuda = SimpleNamespace(
            Event=lambda: event,
            get_elapsed_time=lambda begin, end: seconds * 1e3,
            profiler=SimpleNamespace(
                start=lambda: self.calls.append("start"), stop=lambda: self.calls.append("stop")
            ),
            nvtx=SimpleNamespace(
                RangePush=lambda name: self.calls.append(name), RangePop=lambda: self.calls.append("pop")
            ),
        )
        self.xp = SimpleNamespace(**{n: getattr(numpy, n) for n in dir(numpy) if n[0] != "_"}, cuda=cuda)


def captured(folder: Path, tool: str, launches: int, seconds: float = 1e-6) -> tuple[list[str], Captured]:
    """Returns the calls to the profiler, and the result; `seconds` elapse between any two events."""
    job = make_job(folder, RIGHT)
    backend = RecordingBackend(seconds)
    launcher = Launcher(job.build_folder / "kernel.so", backend)
    problem = Problem(backend.xp, job.family, job.family.case("64"))
    result = capture_case.capture_case(
        backend, launcher, problem, CaptureWork(tool=tool, launches=launches), "right:64"
    )
    assert problem.verdict().reason == "", "the captured launches did not write the results"
    return backend.calls, result


def test_each_launch_has_a_range_inside_the_range_of_the_case_for_nsys(tmp_path: Path) -> None:
    calls, result = captured(tmp_path, "nsys", 3)
    inner = [word for i in range(3) for word in (f"launch:{i}", "pop")]
    assert calls == ["start", "case:right:64", *inner, "pop", "stop"]
    assert result.launches == 3


def test_ncu_captures_one_launch(tmp_path: Path) -> None:
    calls, result = captured(tmp_path, "ncu", 10)
    assert calls == ["start", "case:right:64", "launch:0", "pop", "pop", "stop"]
    assert result == Captured(launches=1, traced_us=None), "ncu replays the kernel"


def test_events_under_nsys_give_the_time_per_launch_while_it_traces(tmp_path: Path) -> None:
    assert captured(tmp_path, "nsys", 10, seconds=0.02)[1].traced_us == pytest.approx(2000)


@pytest.mark.parametrize(
    ("limited", "waited_s"), [([True, True, False], 0.02), ([False], 0.0), ([True] * 1000, 1.0), ([], 0.0)]
)
def test_captures_wait_until_no_limit_holds_the_clock_down_but_at_most_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limited: list[bool], waited_s: float
) -> None:
    """Without a GPU that reports its state, captures do not wait."""
    clock = Clock()
    states = iter(limited)

    def state() -> SimpleNamespace | None:
        found = next(states, None)
        return None if found is None else SimpleNamespace(limits=("sw_power_cap",) if found else ())

    monkeypatch.setattr(capture_case, "time", clock)
    monkeypatch.setattr(capture_case, "clock_state", state)
    calls, _ = captured(tmp_path, "ncu", 1)
    assert clock.now_s == pytest.approx(waited_s, abs=0.011)
    assert calls[0] == "start"


@pytest.mark.parametrize(("seconds", "expected"), [(0.25, 4), (10.0, 1)])
def test_slow_kernels_are_launched_less_often(tmp_path: Path, seconds: float, expected: int) -> None:
    assert captured(tmp_path, "nsys", 10, seconds)[1].launches == expected


def test_launches_for_nsys_are_warmed_up_like_timed_ones(tmp_path: Path, monkeypatch) -> None:
    launched: list[int] = []
    enqueue = Launcher.enqueue
    monkeypatch.setattr(
        Launcher, "enqueue", lambda self, arguments: (launched.append(1), enqueue(self, arguments))
    )
    captured(tmp_path, "nsys", 3, seconds=0.001)
    assert len(launched) >= 25 + 3
    launched.clear()
    captured(tmp_path, "nsys", 3, seconds=1e-6)
    assert len(launched) < 300, "nsys records each of them"
