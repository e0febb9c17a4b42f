"""What a profiler captures of a case: only the requested launches, in the ranges that extraction expects."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from host_family import make_job
from warplog.measure.worker.backend import Launcher, NumpyBackend
from warplog.measure.worker.capture_case import capture_case
from warplog.measure.worker.problem import Problem

RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"


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


def captured(folder: Path, tool: str, launches: int, seconds: float = 1e-6) -> tuple[list[str], int]:
    """Returns the calls to the profiler, and the number of launches in the result."""
    job = make_job(folder, RIGHT)
    backend = RecordingBackend(seconds)
    launcher = Launcher(job.build_folder / "kernel.so", backend)
    problem = Problem(backend.xp, job.family, job.family.case("64"))
    result = capture_case(backend, launcher, problem, tool, launches, "right:64")
    assert problem.verdict().reason == "", "the captured launches did not write the results"
    return backend.calls, result["launches"]


def test_each_launch_has_a_range_inside_the_range_of_the_case_for_nsys(tmp_path: Path) -> None:
    calls, launches = captured(tmp_path, "nsys", 3)
    inner = [word for i in range(3) for word in (f"launch:{i}", "pop")]
    assert calls == ["start", "case:right:64", *inner, "pop", "stop"]
    assert launches == 3


def test_ncu_captures_one_launch(tmp_path: Path) -> None:
    calls, launches = captured(tmp_path, "ncu", 10)
    assert calls == ["start", "case:right:64", "launch:0", "pop", "pop", "stop"]
    assert launches == 1


@pytest.mark.parametrize(("seconds", "expected"), [(0.25, 4), (10.0, 1)])
def test_slow_kernels_are_launched_less_often(tmp_path: Path, seconds: float, expected: int) -> None:
    assert captured(tmp_path, "nsys", 10, seconds)[1] == expected


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
