"""A family is measured on one board: if it moves, all of it is measured again; a lost board's families go elsewhere."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import fake_driver
from fake_driver import H200, Driver
from host_family import make_job, make_timer, named
from one_variant import check_variant
from warplog.core.errors import WarplogError
from warplog.core.records import FamilyRecord
from warplog.machine import device
from warplog.measure import check_time
from warplog.measure.job import Job, this_gpu
from warplog.measure.supervise import finished, run_cases

RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
SECOND = H200 | {"GetUUID": "GPU-bbbb"}
POLICY = {
    **{
        "processes": 1,
        "most_processes": 1,
        "further_seconds": 0.0,
        "run_error": 1.0,
        "min_samples": 3,
        "max_samples": 5,
    },
    **{"max_seconds": 0.02, "rel_error": 1.0, "warmup_launches": 1, "warmup_ms": 0, "hot_seconds": 0.001},
    **{"hot_cases": "none", "timeout_s": 20},
}


def on(job: Job, uuid: str) -> Job:
    return replace(job, gpu=replace(job.gpu, uuid=uuid))


@pytest.fixture
def time_on(tmp_path: Path) -> Callable[..., set[str]]:
    """Returns a function that times variants on a board, and returns the board of every variant in the record."""
    checked = named(replace(make_job(tmp_path, RIGHT), inputs_sha256="inputs"), "right", "other")
    check_time.check_family(checked)
    timer = make_timer(tmp_path)
    record = tmp_path / "time" / "none" / "scale.json"

    def run(uuid: str, *variants: str) -> dict[str, str]:
        jobs = [on(replace(job, record=record, settings=POLICY), uuid) for job in checked]
        chosen = [job for job in jobs if job.variant.name in variants]
        check_time.time_family(chosen, checked[0].record, timer, ["64"])
        records = FamilyRecord.read(record).variants
        return {name: one["provenance"]["gpu_uuid"] for name, one in records.items()}

    return run


def test_a_family_that_moves_to_another_board_is_timed_again_as_a_whole(
    time_on: Callable[..., dict[str, str]],
) -> None:
    assert time_on("GPU-a", "right") == {"right": "GPU-a"}
    assert time_on("GPU-a", "right", "other") == {"right": "GPU-a", "other": "GPU-a"}
    assert time_on("GPU-b", "right", "other") == {"right": "GPU-b", "other": "GPU-b"}


def test_a_check_is_valid_on_every_board(tmp_path: Path) -> None:
    job = replace(make_job(tmp_path, RIGHT), inputs_sha256="inputs")
    first = check_variant(on(job, "GPU-a"))
    assert check_variant(on(job, "GPU-b")) == first


def test_an_interrupted_job_does_not_go_on_with_cases_of_another_board(tmp_path: Path) -> None:
    job = make_job(tmp_path, RIGHT)
    task = on(job, "GPU-a").task("check", ("odd", "one"), {"rounds": 1})
    run_cases(task, 20, print)
    assert set(finished(task)) == {"odd", "one"}
    assert not finished(on(job, "GPU-b").task("check", ("odd", "one"), {"rounds": 1}))


def test_the_planned_board_is_taken_and_the_first_one_without_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_driver.install(monkeypatch, H200, SECOND)
    assert this_gpu("h200", "GPU-bbbb", "sgemm").uuid == "GPU-bbbb"
    assert this_gpu("h200").uuid == "GPU-aaaa"
    with pytest.raises(
        WarplogError, match=r"this machine has NVIDIA H200 \(h200\), but the campaign is for h1"
    ):
        this_gpu("h100", "GPU-bbbb", "sgemm")


def test_a_lost_boards_family_goes_to_the_one_that_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = dict.fromkeys(H200, Driver.NVMLError("GPU is lost"))
    fake_driver.install(monkeypatch, H200, lost)
    assert this_gpu("h200", "GPU-bbbb", "sgemm").uuid == "GPU-aaaa"
    assert "sgemm: GPU-bbbb does not respond; measuring on GPU-aaaa" in capsys.readouterr().err


def test_all_stages_of_a_lost_boards_family_go_to_the_same_board(monkeypatch: pytest.MonkeyPatch) -> None:
    boards = [H200 | {"GetUUID": f"GPU-{number}"} for number in range(4)]
    fake_driver.install(monkeypatch, *boards)
    places = {
        family: this_gpu("h200", "GPU-gone", family).uuid for family in ("sgemm", "scan", "dsmem", "power")
    }
    assert places == {family: this_gpu("h200", "GPU-gone", family).uuid for family in places}
    assert len(set(places.values())) > 1


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
