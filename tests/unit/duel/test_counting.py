"""Which counters differ between the sides of a duel, and why they may be unknown."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import structs

from host_family import make_job
from warplog.core.errors import WarplogError
from warplog.duel import counting
from warplog.duel.making import Made
from warplog.duel.sides import Corner
from warplog.machine import toolchain
from warplog.machine.toolchain import Tool
from warplog.measure.job import Job
from warplog.measure.results import Result
from warplog.measure.task import Task
from warplog.records.measured import Session

A = {"instructions_executed": 500.0, "dram_bytes": 4e6, "registers_per_thread": 16.0, "duration_us": 1.0}
B = {"instructions_executed": 600.0, "dram_bytes": 4.05e6, "registers_per_thread": 20.0, "duration_us": 4.0}
LONG = {"instructions_executed": 1e7, "dram_bytes": 3e8, "registers_per_thread": 22.0}
SHORT = {"instructions_executed": 900.0, "dram_bytes": 1e4, "registers_per_thread": 22.0}
WAITS = SHORT | {"instructions_executed": 3600.0, "dram_bytes": 2e4}
MORE = SHORT | {"instructions_executed": 1000.0}


class FakeNcu:
    """Stands in for the session: reports of launches, whose kernels have the counters of `sides` in turn."""

    def __init__(self, *sides: Sequence[Mapping[str, float]]) -> None:
        self.sides = list(sides)
        self.tasks: list[Task] = []
        self.status, self.log = "ok", ""

    def run_cases(self, task: Task, *_: object, **__: object) -> tuple[list[Result], Session]:
        self.tasks.append(task)
        if self.log:
            folder = Path(task.folder)
            folder.mkdir(parents=True)
            (folder / "worker.log").write_text(self.log)
            raise WarplogError("the worker failed")
        return [Result(run=task.runs[0], status=self.status, reason="why")], Session()

    def read_any(self, report: Path) -> list[SimpleNamespace]:
        assert str(report.with_suffix("")) in self.tasks[-1].wrapper
        kernels = self.sides.pop(0)
        return [
            SimpleNamespace(kernel=f"kernel_{launch}", launch=launch, metric=name, value=value)
            for launch, values in enumerate(kernels)
            for name, value in values.items()
        ]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return make_job(tmp_path, "")


@pytest.fixture
def ncu(monkeypatch: pytest.MonkeyPatch) -> FakeNcu:
    fake = FakeNcu((A, A), (B, B))
    monkeypatch.setattr(counting, "run_cases", fake.run_cases)
    monkeypatch.setattr(counting, "read_any", fake.read_any)
    monkeypatch.setattr(toolchain, "find", lambda name: Tool(name, Path("/opt/ncu"), "2026.1", ""))
    return fake


def compare(job: Job, folder: Path) -> counting.Counted:
    side = Made(Corner("right", job.family, job.variant), job.library, job.build)
    return counting.compare((side, side), "64", job.gpu, "cupy", folder)


def test_counters_beyond_their_tolerance_are_named(job: Job, ncu: FakeNcu, tmp_path: Path) -> None:
    """DRAM traffic differs by 1 %, which the same code shows as well; a time is no counter."""
    counted = compare(job, tmp_path)
    assert {one.name: (one.a, one.b) for one in counted.counters} == {
        "instructions_executed": (1000.0, 1200.0),
        "registers_per_thread": (16.0, 20.0),  # the larger of two kernels
    }
    assert counted.why_not == ""
    assert [str(run) for task in ncu.tasks for run in task.runs] == ["right:64", "right:64"]
    assert all(task.wrapper[0] == "/opt/ncu" and task.libraries["right"] for task in ncu.tasks)


@pytest.mark.parametrize(
    ("a", "b", "named"),
    [
        ((LONG, SHORT, SHORT), (LONG, SHORT, WAITS), [("instructions_executed", "kernel_2", 3)]),
        ((LONG, WAITS), (LONG, SHORT), [("instructions_executed", "kernel_1", 2)]),
        (
            (LONG, SHORT, SHORT),
            (LONG, WAITS, MORE),
            [("instructions_executed", "kernel_1", 2)],
        ),  # the most of two
        ((A, SHORT), (A, WAITS), [("instructions_executed", "", 0)]),
        ((LONG, SHORT), (LONG, SHORT), []),
        ((LONG, SHORT), (LONG, SHORT, SHORT), []),  # which kernel is which is unknown
    ],
)
def test_a_change_that_the_sum_of_all_kernels_hides_is_named_with_its_kernel(
    a: Sequence[Mapping[str, float]],
    b: Sequence[Mapping[str, float]],
    named: list[tuple[str, str, int]],
    job: Job,
    ncu: FakeNcu,
    tmp_path: Path,
) -> None:
    ncu.sides = [a, b]
    found = compare(job, tmp_path).counters
    assert [(one.name, one.kernel, one.number) for one in found] == named


def test_without_permission_the_remedy_is_said(job: Job, ncu: FakeNcu, tmp_path: Path) -> None:
    ncu.log = "==ERROR== ERR_NVGPUCTRPERM"
    assert "NVreg_RestrictProfilingToAdminUsers=0" in compare(job, tmp_path).why_not


def test_a_launch_that_fails_under_the_profiler_leaves_no_counters(
    job: Job, ncu: FakeNcu, tmp_path: Path
) -> None:
    ncu.status = "timeout"
    assert compare(job, tmp_path) == counting.Counted(why_not="right: why")


def test_without_ncu_the_remedy_is_said(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find", lambda name: Tool(name, None, None, "install it"))
    assert compare(job, tmp_path).why_not == "ncu was not found; install it"


def test_a_python_module_has_no_counters(job: Job, ncu: FakeNcu, tmp_path: Path) -> None:
    python = structs.replace(job.variant, language="triton")
    side = Made(Corner("module", job.family, python), job.variant.file, None)
    assert "Python module" in counting.compare((side, side), "64", job.gpu, "cupy", tmp_path).why_not
