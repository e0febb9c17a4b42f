"""What becomes of a case whose worker ends, and how long workers took to start; no process is started."""

import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warplog.core.process import Completed
from warplog.measure import journal, supervise
from warplog.measure.journal import Begun, Journal, Note, Waiting, note, results_in
from warplog.measure.results import Checked, Result
from warplog.measure.task import CaseRun, CheckWork, Task

ONE, TWO = CaseRun(variant="one", case="64"), CaseRun(variant="two", case="64")
DONE = Completed(0, "", False, 1.0, "")
KILLED = Completed(-signal.SIGKILL, "SIGKILL", False, 1.0, "")
OVERDUE = Completed(-signal.SIGKILL, "SIGKILL", True, 1.0, "")


def ok(run: CaseRun, seconds: float = 1.0) -> Result:
    return Result(run=run, seconds=seconds, found=Checked(rounds=1))


@pytest.fixture
def supervised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Returns a function that runs two cases in made-up workers: the notes of each, and how it ends."""
    clock = SimpleNamespace(now_s=100.0)
    clock.monotonic = lambda: clock.now_s
    monkeypatch.setattr(Task, "fingerprint", lambda _: "0" * 64)
    for module in (journal, supervise):
        monkeypatch.setattr(module, "time", clock)

    def start(*workers: tuple[list[Note], Completed]) -> Any:
        left = iter(workers)

        def run(_command: object, stop: Callable[[], bool], **_: object) -> Completed:
            notes, completed = next(left)
            for entry in notes:
                note(tmp_path / "journal.jsonl", entry)
            stop()
            clock.now_s += 10.0
            return completed

        monkeypatch.setattr(supervise, "run", run)
        libraries = {"one": "one.so", "two": "two.so"}
        files = {"family_file": "family.yaml", "libraries": libraries, "folder": str(tmp_path)}
        task = Task(
            work=CheckWork(rounds=1), backend="numpy", library_sha256="0" * 64, runs=(ONE, TWO), **files
        )
        found = supervise.run_cases(task, 5.0, lambda _: None)
        assert next(left, None) is None, "every worker was needed"
        return found

    return start


def test_a_killed_worker_has_one_more_try(supervised: Any) -> None:
    results, _ = supervised(([Begun(run=ONE)], KILLED), ([Begun(run=ONE), ok(ONE), ok(TWO)], DONE))
    assert [one.status for one in results] == ["ok", "ok"]


def test_a_worker_that_is_killed_twice_crashed(supervised: Any) -> None:
    results, _ = supervised(([Begun(run=ONE)], KILLED), ([Begun(run=ONE)], KILLED), ([ok(TWO)], DONE))
    assert [(one.status, one.reason) for one in results] == [("crashed", "killed by SIGKILL"), ("ok", "")]


def test_a_worker_that_exceeds_its_time_has_no_other_try(supervised: Any) -> None:
    results, _ = supervised(([Begun(run=ONE)], OVERDUE), ([ok(TWO)], DONE))
    assert [(one.status, one.reason) for one in results] == [("timeout", "no answer within 5 s"), ("ok", "")]


def test_the_start_of_a_worker_is_what_its_cases_do_not_take_and_is_shared_by_the_variants(
    supervised: Any,
) -> None:
    """Of 10 s with the GPU, two cases take 1 and 3 s; the start of 6 s is 3 s for each of two variants."""
    _, session = supervised(([Waiting(held_since_s=100.0), ok(ONE, 1.0), ok(TWO, 3.0)], DONE))
    assert session.start_seconds == 3.0


def test_an_incomplete_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    reader = Journal(path, "0" * 64, (ONE, TWO))
    note(path, ok(ONE))
    whole = path.read_bytes()
    note(path, ok(TWO))
    line = path.read_bytes()[len(whole) :]
    path.write_bytes(whole + line[:-1])
    assert [one.run for one in reader.read()] == [ONE]
    path.write_bytes(whole + line)
    assert [one.run for one in reader.read()] == [TWO]
    assert reader.read() == []


def test_a_result_is_one_line_of_the_journal_whatever_its_reason_says(tmp_path):
    result = Result(run=CaseRun(variant="naive", case="64"), status="crashed", reason="a\u2028b\x85c")
    note(tmp_path / "journal.jsonl", result)
    assert results_in(tmp_path / "journal.jsonl") == [result]
