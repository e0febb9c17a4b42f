"""Two measuring jobs on one GPU: the second starts up while the first works, then waits; start-up time is accounted."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from host_family import make_job
from warplog.core.errors import WarplogError
from warplog.core.locks import hold
from warplog.core.process import Completed
from warplog.measure import journal, supervise
from warplog.measure.job import Job
from warplog.measure.journal import Begun, Journal, Note, Waiting, note
from warplog.measure.results import Result
from warplog.measure.stages.family_stage import Part, family_task
from warplog.measure.task import CaseRun, CheckWork, Task
from warplog.measure.worker import main as worker
from warplog.records import door
from warplog.records.config import CheckSettings

RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
LONG_S = 600.0  # longer than a start may take, and than a wait without a message


class Clock:
    """Stands in for the module `time`; returns a fixed time, or is ahead of the real clock."""

    def __init__(self, stands_at_s: float | None = None) -> None:
        self.now_s = stands_at_s
        self.ahead_s = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_s if self.now_s is None else self.now_s


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Returns a job that crashes until tmp_path/free exists, and is correct then."""
    found = make_job(tmp_path, f'if (access("{tmp_path}/free", F_OK)) abort(); {RIGHT}')
    return replace(found, gpu=structs.replace(found.gpu, uuid=str(tmp_path)))


def checking(job: Job[CheckSettings], *cases: str, wrapper: tuple[str, ...] = ()) -> Task:
    return family_task([Part(job, cases)], CheckWork(rounds=1), wrapper=wrapper)


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_worker_starts_up_and_waits_while_another_holds_the_gpu(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    waits, looks = threading.Event(), threading.Semaphore(0)
    say_waiting = Journal.say_waiting

    def noticed(noted: Journal, seconds: float, lock: Path) -> None:
        say_waiting(noted, seconds, lock)
        waits.set()
        if seconds > LONG_S - 1:
            looks.release()

    monkeypatch.setattr(supervise, "time", clock)
    monkeypatch.setattr(Journal, "say_waiting", noticed)
    task = checking(job, "odd", "one", "even")
    done = []
    thread = threading.Thread(target=lambda: done.append(supervise.run_cases(task, 20, print)))
    with hold(job.gpu.uuid):
        thread.start()
        assert waits.wait(30)
        clock.ahead_s = LONG_S
        assert looks.acquire(timeout=30)
        assert looks.acquire(timeout=30)
        clock.ahead_s = 0.0
        (tmp_path / "free").touch()
    thread.join(30)
    [(results, _)] = done
    assert [result.status for result in results] == ["ok"] * 3, "waiting is not a start that hangs"
    assert (
        capfd.readouterr().err.count(
            f"waiting for the GPU: another process is measuring on it (process {os.getpid()} on "
        )
        == 1
    )


def test_the_time_on_the_gpu_counts_from_when_the_lock_is_acquired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, noted = Clock(100.0), tmp_path / "journal.jsonl"

    @contextmanager
    def held_after_50_s(_uuid: str) -> Iterator[None]:
        clock.now_s = 150.0
        yield

    monkeypatch.setattr(worker, "hold", held_after_50_s)
    monkeypatch.setattr(worker, "time", clock)
    with worker._alone("GPU-1", noted):
        notes = [door.decode(json.loads(line), Note, "") for line in noted.read_text().splitlines()]
    assert notes == [Waiting(), Waiting(held_since_s=150.0)]


def test_start_time_is_shared_by_the_variants_and_excludes_waiting_and_cases(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker waits for 50 s and holds the GPU for 8 s, of which its two cases take 2.5 s and 3.5 s."""
    clock = Clock(100.0)

    def fake_worker(command: Sequence[str], **_: object) -> Completed:
        task = door.read(Path(command[-1]), Task)
        note(task.journal, Waiting())
        note(task.journal, Waiting(held_since_s=150.0))
        for run, seconds in zip(task.runs, (2.5, 3.5), strict=True):
            note(task.journal, Begun(run=run))
            note(task.journal, Result(run=run, seconds=seconds))
        clock.now_s = 158.0
        return Completed(0, "", False, 58.0, "")

    for module in (journal, supervise):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(supervise, "run", fake_worker)
    runs = tuple(CaseRun(variant=name, case="odd") for name in ("right", "other"))
    task = structs.replace(checking(job), runs=runs)
    results, session = supervise.run_cases(task, 5, print)
    assert [result.seconds for result in results] == [2.5, 3.5]
    assert session.start_seconds == 1.0


@pytest.mark.parametrize(
    ("wrapper", "words"),
    [
        (("/bin/true",), "the worker failed \\(exit status 0\\)"),
        (("/bin/sh", "-c", "exit 0; #"), "the worker failed"),
        (("/bin/false",), "the worker failed \\(exit status 1\\)"),
    ],
)
def test_a_profiler_that_does_not_start_its_target_is_an_error(
    job: Job, wrapper: tuple[str, ...], words: str
) -> None:
    task = checking(job, "odd", "one", wrapper=wrapper)
    with pytest.raises(WarplogError, match=words):
        supervise.run_cases(task, 5, print)


def test_a_target_outside_of_the_profilers_process_group_is_ended_too(tmp_path: Path) -> None:
    place = tmp_path / "pid"
    job = make_job(
        tmp_path, f'FILE* f = fopen("{place}", "w"); fprintf(f, "%d", getpid()); fclose(f); sleep(600);'
    )
    task = checking(job, "odd", wrapper=("setsid", "--wait"))
    results, _ = supervise.run_cases(task, 1, print)
    assert [r.status for r in results] == ["timeout"]
    until(lambda: not Path(f"/proc/{place.read_text()}/cmdline").exists())


def test_a_crash_is_noticed_even_if_the_profiler_exits_with_0(tmp_path: Path) -> None:
    job = make_job(tmp_path, "if (a->N == 1) abort();" + RIGHT)
    hiding = ("/bin/sh", "-c", '"$@" || exit 0', "sh")
    task = checking(job, "odd", "one", "even", wrapper=hiding)
    results, _ = supervise.run_cases(task, 20, print)
    assert [r.status for r in results] == ["ok", "crashed", "ok"]
