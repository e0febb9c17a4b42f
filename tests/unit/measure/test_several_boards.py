"""A family takes a free board and stays on it; if it moves, all of it is measured again."""

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import fake_driver
from fake_driver import H200, Driver
from host_family import make_job
from warplog.core.errors import WarplogError
from warplog.core.paths import PACKAGE
from warplog.machine import device
from warplog.measure.family_board import boards_of
from warplog.measure.job import Job
from warplog.measure.stages.family_stage import Part, family_task
from warplog.measure.supervise import finished, run_cases
from warplog.measure.task import CheckWork

RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
SECOND = H200 | {"GetUUID": "GPU-bbbb"}


def on(job: Job, uuid: str) -> Job:
    return replace(job, gpu=structs.replace(job.gpu, uuid=uuid))


def test_an_interrupted_job_does_not_go_on_with_cases_of_another_board(tmp_path: Path) -> None:
    job = make_job(tmp_path, RIGHT)
    first, second = (
        family_task([Part(on(job, uuid), ("odd", "one"))], CheckWork(rounds=1)) for uuid in ("GPU-a", "GPU-b")
    )
    run_cases(first, 20, print)
    assert {run.case for run in finished(first)} == {"odd", "one"}
    assert not finished(second)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Returns a function that starts a measuring job of a family, which runs until `end`."""
    code = (
        "import sys; from msgspec.structs import replace; from pathlib import Path; from fake_driver import DESCRIBED\n"
        "from warplog.core import locks; from warplog.machine import device\n"
        "from warplog.measure.family_board import board_of\n"
        "place, family, *uuids = sys.argv[1:]; of_uuid = locks.lock_path\n"
        "locks.lock_path = lambda uuid, folder=None: of_uuid(uuid, Path(place))\n"
        "device.boards = lambda: [replace(DESCRIBED, uuid=uuid) for uuid in uuids]\n"
        "print(board_of(family, 'h200', Path(place, 'results')).uuid, flush=True); sys.stdin.read()"
    )
    env = os.environ | {"PYTHONPATH": f"{PACKAGE.parent}:{Path(fake_driver.__file__).parent}"}
    jobs = []

    def started(family: str, *uuids: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", code, str(tmp_path), family, *(uuids or ("GPU-a", "GPU-b"))]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        jobs.append(subprocess.Popen(command, text=True, env=env, **pipes))
        return jobs[-1]

    yield started
    for job in jobs:
        job.kill()
        job.communicate()


def board(job: "subprocess.Popen[str]") -> str:
    """Returns the board that a job has got; waits for it."""
    return job.stdout.readline().strip()


def end(job: "subprocess.Popen[str]") -> str:
    """Returns what a job wrote on standard error until its end."""
    return job.communicate("")[1]


def test_families_take_free_boards_and_the_next_one_waits_for_the_first(start: Callable[..., Any]) -> None:
    first, second = start("sgemm"), start("scan")
    taken = [board(first), board(second)]
    assert sorted(taken) == ["GPU-a", "GPU-b"]
    third = start("power")
    assert not select.select([third.stdout], [], [], 1.5)[0], "both boards are in use"
    end(second)
    assert board(third) == taken[1]


def test_of_free_boards_a_family_takes_that_with_the_fewest_families(start: Callable[..., Any]) -> None:
    taken = []
    for family in ("sgemm", "scan", "power", "dsmem"):
        job = start(family)
        taken.append(board(job))
        end(job)
    assert taken == ["GPU-a", "GPU-b", "GPU-a", "GPU-b"]


def test_jobs_of_a_family_that_start_at_once_get_the_same_board(start: Callable[..., Any]) -> None:
    assert len({board(job) for job in [start("sgemm") for _ in range(3)]}) == 1


def test_after_kill_9_a_family_is_back_on_its_board_even_if_only_another_is_free(
    start: Callable[..., Any],
) -> None:
    other = start("scan", "GPU-a")
    assert board(other) == "GPU-a"
    killed = start("sgemm")
    assert board(killed) == "GPU-b"
    killed.kill()
    killed.communicate()
    end(other)
    assert board(start("power", "GPU-b")) == "GPU-b"
    assert board(start("sgemm")) == "GPU-b"


def test_a_lost_boards_family_takes_another_one_and_stays_there(start: Callable[..., Any]) -> None:
    job = start("sgemm")
    assert (board(job), end(job)) == ("GPU-a", "")
    job = start("sgemm", "GPU-b", "GPU-c")
    assert board(job) == "GPU-b"
    assert "sgemm: GPU-a does not respond or is not visible; measuring on GPU-b" in end(job)
    assert board(start("sgemm")) == "GPU-b"


def test_jobs_of_a_single_board_do_not_wait_for_each_other(start: Callable[..., Any], tmp_path: Path) -> None:
    assert [board(job) for job in (start("sgemm", "GPU-a"), start("scan", "GPU-a"))] == ["GPU-a"] * 2
    assert not (tmp_path / "results").exists()


def test_a_machine_with_another_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_driver.install(monkeypatch, H200, SECOND)
    assert [gpu.uuid for gpu in boards_of("h200")] == ["GPU-aaaa", "GPU-bbbb"]
    with pytest.raises(
        WarplogError, match=r"this machine has NVIDIA H200 \(h200\), but the campaign is for h1"
    ):
        boards_of("h100")


def test_a_board_that_does_not_respond_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = dict.fromkeys(H200, Driver.NVMLError("GPU is lost"))
    fake_driver.install(monkeypatch, H200, lost)
    assert [gpu.uuid for gpu in boards_of("h200")] == ["GPU-aaaa"]


def test_boards_are_those_that_cuda_shows_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_driver.install(monkeypatch, H200, SECOND)
    for setting, expected in (
        ("1,0", ["GPU-bbbb", "GPU-aaaa"]),
        ("GPU-bbbb", ["GPU-bbbb"]),
        ("GPU-gone,0", ["GPU-aaaa"]),
        ("1,-1,0", ["GPU-bbbb"]),
        ("", []),
    ):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
        assert [gpu.uuid for gpu in device.boards()] == expected, setting
