"""What a profiler is shown of a case: the ranges that extraction looks for, and only the wanted launches."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from host_family import make_job
from warplog.measure.worker.backend import Launcher, NumpyBackend
from warplog.measure.worker.capture_case import capture_case
from warplog.measure.worker.problem import Problem

RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"


class RecordingBackend(NumpyBackend):
    """Host functions, with the parts of cupy.cuda that a capture uses noting what is asked of them."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.said: list[str] = []
        numpy = self.xp
        event = SimpleNamespace(record=lambda: None, synchronize=lambda: None)
        cuda = SimpleNamespace(
            Event=lambda: event,
            get_elapsed_time=lambda begin, end: seconds * 1e3,
            profiler=SimpleNamespace(
                start=lambda: self.said.append("start"), stop=lambda: self.said.append("stop")
            ),
            nvtx=SimpleNamespace(
                RangePush=lambda name: self.said.append(name), RangePop=lambda: self.said.append("pop")
            ),
        )
        self.xp = SimpleNamespace(**{n: getattr(numpy, n) for n in dir(numpy) if n[0] != "_"}, cuda=cuda)


def captured(folder: Path, tool: str, launches: int, seconds: float = 1e-6) -> tuple[list[str], int]:
    """What the profiler was told, and the launches that the result counts."""
    job = make_job(folder, RIGHT)
    backend = RecordingBackend(seconds)
    launcher = Launcher(job.build_folder / "kernel.so", backend)
    problem = Problem(backend.xp, job.family, job.family.case("64"))
    result = capture_case(backend, launcher, problem, tool, launches, "right:64")
    assert problem.verdict().reason == "", "the captured launches did not write the answer"
    return backend.said, result["launches"]


def test_nsys_sees_each_launch_in_its_range_within_that_of_the_case(tmp_path: Path) -> None:
    said, launches = captured(tmp_path, "nsys", 3)
    inner = [word for i in range(3) for word in (f"launch:{i}", "pop")]
    assert said == ["start", "case:right:64", *inner, "pop", "stop"]
    assert launches == 3


def test_ncu_sees_one_launch(tmp_path: Path) -> None:
    said, launches = captured(tmp_path, "ncu", 10)
    assert said == ["start", "case:right:64", "launch:0", "pop", "pop", "stop"]
    assert launches == 1


@pytest.mark.parametrize(("seconds", "expected"), [(0.25, 4), (10.0, 1)])
def test_slow_kernels_are_launched_less_often(tmp_path: Path, seconds: float, expected: int) -> None:
    assert captured(tmp_path, "nsys", 10, seconds)[1] == expected


def test_what_nsys_sees_back_to_back_is_warmed_up_as_what_is_timed(tmp_path: Path, monkeypatch) -> None:
    launched: list[int] = []
    enqueue = Launcher.enqueue
    monkeypatch.setattr(
        Launcher, "enqueue", lambda self, arguments: (launched.append(1), enqueue(self, arguments))
    )
    captured(tmp_path, "nsys", 3, seconds=0.001)
    assert len(launched) >= 25 + 3
    launched.clear()
    captured(tmp_path, "nsys", 3, seconds=1e-6)
    assert len(launched) < 300, "each is in the report"
