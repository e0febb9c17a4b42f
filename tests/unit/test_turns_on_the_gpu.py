"""Two measuring jobs and one GPU: the second starts beside the first and works after it; what that costs is known."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from host_family import make_job
from warplog.core.errors import WarplogError
from warplog.core.locks import hold
from warplog.core.records import Record, read_json
from warplog.measure import check_time, supervise
from warplog.measure.job import Job

RIGHT = "usleep(20000); for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"


@pytest.fixture
def job(tmp_path: Path) -> Job:
    found = make_job(tmp_path, RIGHT)
    return replace(found, gpu=replace(found.gpu, uuid=str(tmp_path)))


def notes(job: Job) -> list[Record]:
    journal = job.scratch.with_name(".check.work") / "journal.jsonl"
    return [json.loads(line) for line in journal.read_text().splitlines()] if journal.is_file() else []


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_worker_starts_and_waits_while_another_has_the_gpu(
    job: Job, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(supervise, "_START_S", 1.0)
    monkeypatch.setattr("warplog.measure.journal._SAY_AFTER_S", 0.5)
    thread = threading.Thread(target=check_time.check_family, args=([job],))
    with hold(job.gpu.uuid):
        thread.start()
        until(lambda: {"waiting": True} in notes(job))
        time.sleep(1.5)
        assert not [n for n in notes(job) if "begin" in n or "session" in n]
    thread.join(30)
    assert read_json(job.record)["status"] == "ok", "a wait is no hanging start"
    assert capfd.readouterr().err.count("waiting for the GPU: another process is measuring on it") == 1


def test_the_cost_of_a_start_is_a_share_and_holds_no_waiting(job: Job) -> None:
    thread = threading.Thread(target=check_time.check_family, args=([job],))
    with hold(job.gpu.uuid):
        thread.start()
        until(lambda: {"waiting": True} in notes(job))
        began = time.monotonic()
        time.sleep(1.0)
    thread.join(30)
    held_s = time.monotonic() - began - 1.0
    record = read_json(job.record)
    cases_s = sum(case["seconds"] for case in record["cases"])
    assert cases_s >= 3 * 2 * 0.02
    assert 0 < record["session"]["start_seconds"] <= held_s - cases_s


@pytest.mark.parametrize(
    ("wrapper", "words"),
    [
        (("/bin/true",), "the worker failed \\(exit status 0\\)"),
        (("/bin/sh", "-c", "exit 0; #"), "the worker failed"),
        (("/bin/false",), "the worker failed \\(exit status 1\\)"),
    ],
)
def test_a_profiler_that_never_starts_its_target_is_told_of(
    job: Job, wrapper: tuple[str, ...], words: str
) -> None:
    task = job.task("check", ("odd", "one"), {"rounds": 1}, wrapper=wrapper)
    with pytest.raises(WarplogError, match=words):
        supervise.run_cases(task, 5, print)


def test_a_target_that_left_the_profilers_group_is_ended_with_it(tmp_path: Path) -> None:
    place = tmp_path / "pid"
    job = make_job(
        tmp_path, f'FILE* f = fopen("{place}", "w"); fprintf(f, "%d", getpid()); fclose(f); sleep(600);'
    )
    task = job.task("check", ("odd",), {"rounds": 1}, wrapper=("setsid", "--wait"))
    results, _ = supervise.run_cases(task, 1, print)
    assert [r["status"] for r in results] == ["timeout"]
    until(lambda: not Path(f"/proc/{place.read_text()}/cmdline").exists())


def test_a_profiler_that_hides_a_crash_hides_it_from_nobody(tmp_path: Path) -> None:
    job = make_job(tmp_path, "if (a->N == 1) abort();" + RIGHT)
    hiding = ("/bin/sh", "-c", '"$@" || exit 0', "sh")
    task = job.task("check", ("odd", "one", "even"), {"rounds": 1}, wrapper=hiding)
    results, _ = supervise.run_cases(task, 20, print)
    assert [r["status"] for r in results] == ["ok", "crashed", "ok"]
