"""Timing in several processes: which ones run, in which order, and what a crash or a kill leaves."""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from stand_in_workers import at_rest

from host_family import make_job, make_timer, named
from one_variant import record_of, write_record
from warplog.catalog.contract import Measuring
from warplog.measure.job import Job
from warplog.measure.journal import Note
from warplog.measure.results import Result, Sustained
from warplog.measure.stages import timing
from warplog.measure.stages.check import check_family
from warplog.measure.task import CaseRun, Task
from warplog.records import door
from warplog.records.check import Check
from warplog.records.config import CheckSettings, TimeSettings
from warplog.records.family_file import FamilyRecord
from warplog.records.measured import Session
from warplog.records.time import SustainedRun, Time, TimeCase

RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
QUICK = TimeSettings(most_processes=1, max_seconds=0.01, hot_seconds=0.001, timeout_s=20.0)
CASES = ("64", "1000")


class Place:
    """Two checked variants of the host family, whose launches append `<pid> <variant> <N>` to a file."""

    def __init__(self, folder: Path, body_of_other: str = RIGHT) -> None:
        self.folder = folder
        self._log = folder / "launched"
        bodies = {"right": RIGHT, "other": body_of_other}
        self.jobs = [self._job(name, body) for name, body in bodies.items()]
        check_family(self.jobs)
        self.check = self.jobs[0].record
        self.record = folder / "time" / "scale.json"
        self._log.unlink()

    def _job(self, name: str, body: str) -> Job[CheckSettings]:
        note = f'FILE* f = fopen("{self._log}", "a"); fprintf(f, "%d {name} %d\\n", (int)getpid(), a->N); fclose(f);'
        (self.folder / name).mkdir()
        jobs = named(make_job(self.folder / name, note + body), "right", "other")
        job = next(job for job in jobs if job.variant.name == name)
        return replace(
            job, record=self.folder / "check" / "scale.json", scratch=self.folder / f".{name}.work"
        )

    def timing(self, measuring: Measuring | None = None, **settings: Any) -> list[Job[TimeSettings]]:
        """Returns the jobs of the stage time."""
        policy = structs.replace(QUICK, **settings)
        jobs = [replace(job, record=self.record, settings=policy, campaign="c") for job in self.jobs]
        if measuring:
            jobs = [replace(job, family=structs.replace(job.family, measuring=measuring)) for job in jobs]
        return jobs

    def cases(self) -> dict[str, TimeCase]:
        """Returns the recorded cases by `<variant>:<case>`."""
        variants = FamilyRecord.read(self.record, Time).variants
        return {f"{name}:{case.case}": case for name in variants for case in variants[name].cases}

    def launched(self) -> set[tuple[str, str, str]]:
        """Returns process ID, variant and N of all launches."""
        return {tuple(line.split()) for line in self._log.read_text().splitlines()}  # type: ignore[misc]

    def forget(self) -> None:
        self._log.unlink()


def processes_of(launched: set[tuple[str, str, str]], variant: str, case: str) -> set[str]:
    return {pid for pid, name, n in launched if (name, n) == (variant, case)}


def test_each_case_runs_in_fresh_processes_that_the_variants_share(tmp_path: Path) -> None:
    place = Place(tmp_path)
    timing.time_family(place.timing(), place.check, make_timer(tmp_path), CASES)
    launched = place.launched()
    assert {len(processes_of(launched, v, c)) for v in ("right", "other") for c in CASES} == {3}
    assert len({pid for pid, _, _ in launched}) == 3
    for case in place.cases().values():
        assert (case.status, [one.process for one in case.processes]) == ("ok", [1, 2, 3])
        assert sum(one.samples for one in case.processes) == len(case.cold.samples_us)
        assert len({one.seed for one in case.processes}) == 3
        assert all(len(one.addresses) == 2 for one in case.processes)
    assert not list(tmp_path.glob(".scale.*")), "working files are left behind"
    record = record_of(place.timing()[0], Time)
    assert record.session.seed > 0
    with pytest.raises(ValueError, match="times without a passed check"):
        structs.replace(record, check="wrong")
    with pytest.raises(ValueError, match="if and only if its status is ok"):
        structs.replace(record.cases[0], status="wrong")


def test_one_worker_goes_on_with_the_further_processes_that_its_results_ask_for(tmp_path: Path) -> None:
    """`other` at 64 is slow in every other process, so that no number of processes is enough."""
    workers, started = tmp_path / "workers", tmp_path / "started"
    uneven = f"""
    static int slow = -1;
    if (slow < 0) {{
        FILE* parents = fopen("{workers}", "a");
        fprintf(parents, "%d\\n", (int)getppid());
        fclose(parents);
        FILE* file = fopen("{started}", "a");
        fputc('x', file);
        slow = ftell(file) % 2;
        fclose(file);
    }}
    if (slow && a->N == 64) usleep(3000);"""
    place = Place(tmp_path, uneven + RIGHT)
    workers.unlink()
    timing.time_family(
        place.timing(most_processes=8, further_seconds=2.0), place.check, make_timer(tmp_path), CASES
    )
    assert [one.process for one in place.cases()["other:64"].processes] == [1, 2, 3, 4, 5, 6, 7, 8]
    workers_of_processes = workers.read_text().split()
    assert len(workers_of_processes) == 8
    assert len(set(workers_of_processes)) == 1


def test_a_crash_ends_the_case_in_the_other_processes_but_no_other_case(tmp_path: Path) -> None:
    place = Place(tmp_path, f"if (a->N == 1000) abort(); {RIGHT}")
    timing.time_family(place.timing(), place.check, make_timer(tmp_path), CASES)
    found = place.cases()
    assert [found[name].status for name in ("right:64", "right:1000", "other:64")] == ["ok"] * 3
    crashed = found["other:1000"]
    assert crashed.status == "crashed"
    assert "SIGABRT" in crashed.reason
    launched = place.launched()
    assert len(processes_of(launched, "other", "1000")) == 1
    assert {
        len(processes_of(launched, v, c)) for v, c in (("right", "64"), ("right", "1000"), ("other", "64"))
    } == {3}


def test_a_killed_run_goes_on_within_its_processes_and_repeats_nothing(tmp_path: Path) -> None:
    """`other` at 1000 kills the run in the second process."""
    first, supervisor, go = (tmp_path / name for name in ("first", "supervisor", "go"))
    kill_in_second_process = f"""
    if (a->N == 1000 && access("{go}", F_OK)) {{
        int pid = 0;
        FILE* file = fopen("{first}", "r");
        if (file == NULL) {{
            file = fopen("{first}", "w");
            fprintf(file, "%d", (int)getpid());
            fclose(file);
        }} else if (fscanf(file, "%d", &pid) == 1 && pid != getpid()) {{
            if (fscanf(fopen("{supervisor}", "r"), "%d", &pid) == 1) kill(pid, SIGKILL);
            sleep(20);
        }}
    }}"""
    place, timer = Place(tmp_path, kill_in_second_process + RIGHT), make_timer(tmp_path)
    jobs = tmp_path / "jobs.pickle"
    jobs.write_bytes(pickle.dumps(place.timing()))
    script = f"""
import os, pickle, sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from warplog.measure.stages import timing
Path({str(supervisor)!r}).write_text(str(os.getpid()))
jobs = pickle.loads(Path({str(jobs)!r}).read_bytes())
timing.time_family(jobs, Path({str(place.check)!r}), Path({str(timer)!r}), {CASES!r})
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, timeout=60)
    assert done.returncode == -9, done.stderr.decode()
    assert not place.record.exists()
    journal = tmp_path / ".scale.time.work" / "journal.jsonl"
    notes = [door.decode(json.loads(line), Note, "") for line in journal.read_text().splitlines()]
    finished = {note.run for note in notes if isinstance(note, Result)}
    assert {run.process for run in finished} == {1, 2}
    place.forget()
    go.touch()
    timing.time_family(place.timing(), place.check, timer, CASES)
    assert len(place.launched()) == 12 - len(finished)
    assert all([p.process for p in case.processes] == [1, 2, 3] for case in place.cases().values())


def test_a_case_that_a_limit_slows_down_has_a_sustained_time_in_its_record(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (job, _) = place.timing(processes=1, hot_cases="all")
    timing.time_family([job], place.check, make_timer(tmp_path, limited=64), CASES)
    found = place.cases()
    limited, other = found["right:64"], found["right:1000"]
    assert limited.sustained.mean_us > 0
    assert limited.sustained.seconds >= 0.35
    assert limited.no_sustained == ""
    (process,) = limited.processes
    assert (process.sustained.mean_us, process.sustained.steps) == (limited.sustained.mean_us, ())
    assert (other.status, other.sustained, other.no_sustained) == ("ok", None, "not_limited")


def test_a_case_without_hot_time_says_so_and_that_nothing_shows_whether_a_limit_acts(tmp_path: Path) -> None:
    """The profilers capture `64` only."""
    place = Place(tmp_path)
    timing.time_family(place.timing(processes=1), place.check, make_timer(tmp_path), CASES)
    captured, other = place.cases()["right:64"], place.cases()["right:1000"]
    assert (captured.no_hot, captured.no_sustained) == ("", "not_limited")
    assert (other.hot, other.no_hot, other.no_sustained) == (None, "not_captured", "no_hot")


def test_a_record_names_the_status_of_the_check_without_which_there_are_no_times(tmp_path: Path) -> None:
    place = Place(tmp_path)
    wrong = structs.replace(record_of(place.jobs[0], Check), status="wrong", reason="case odd: y is all zero")
    write_record(place.check, wrong)
    timing.time_family(place.timing()[:1], place.check, tmp_path / "timer.so", CASES)
    record = record_of(place.timing()[0], Time)
    assert (record.status, record.check) == ("skipped", "wrong")
    assert record.cases[0].cold is None


class Supervisor:
    """Stands in for run_cases: answers with times that `median_us(name)` gives, and records the tasks."""

    def __init__(
        self,
        median_us: Callable[[str], float],
        limited: Sequence[str] = (),
        sustained_us: Callable[[str], float] = lambda _: 9.0,
    ) -> None:
        self._median_us, self._limited, self._sustained_us = median_us, limited, sustained_us
        self.tasks: list[Task] = []
        self.failing, self.seconds = "", 0.0

    def __call__(self, task: Task, *_: object) -> tuple[list[Result], Session]:
        self.tasks.append(task)
        return [self._result(task.work.mode, run) for run in task.runs], Session(start_seconds=0.5)

    def _result(self, mode: str, run: CaseRun) -> Result:
        name = str(run)
        if name == self.failing:
            return Result(run=run, status="crashed", reason="SIGSEGV")
        if mode == "sustain":
            mean = SustainedRun(
                mean_us=self._sustained_us(name),
                sm_mhz=None,
                power_w=None,
                limits=(),
                launches=1,
                seconds=1.0,
            )
            return Result(run=run, seconds=self.seconds, found=Sustained(run=mean))
        found = at_rest(self._median_us(name), f"{run.variant}:{run.case}" in self._limited)
        return Result(run=run, seconds=self.seconds, found=found)


@pytest.fixture
def supervised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Task]]:
    """Returns a function that times two variants with a stand-in for the workers, and returns the tasks."""
    place = Place(tmp_path)

    def run(supervisor: Supervisor, measuring: Measuring | None = None, **changed: Any) -> list[Task]:
        monkeypatch.setattr(timing, "run_cases", supervisor)
        jobs = place.timing(measuring, **changed.pop("settings", {}))
        if baseline := changed.pop("baseline", ""):
            jobs = [replace(job, family=structs.replace(job.family, baseline=baseline)) for job in jobs]
        timing.time_family(
            [replace(job, **changed) for job in jobs], place.check, tmp_path / "timer.so", CASES
        )
        return supervisor.tasks

    return run


def equal(_name: str) -> float:
    return 100.0


def names(task: Task) -> list[str]:
    return [str(run) for run in task.runs]


def test_the_order_within_a_case_is_random_and_the_same_when_a_run_is_resumed(
    supervised: Callable[..., list[Task]],
) -> None:
    many = {"processes": 12}
    (task,) = supervised(Supervisor(equal), settings=many)
    rounds = [task.runs[i : i + 4] for i in range(0, 48, 4)]
    for number, runs in enumerate(rounds, 1):
        assert {run.process for run in runs} == {number}
        assert [run.case for run in runs] == ["64", "64", "1000", "1000"], "variants share its inputs"
    assert len({tuple(run.variant for run in runs) for runs in rounds}) > 1
    (again,) = supervised(Supervisor(equal), settings=many)
    assert (again.runs, again.work.seed) == (task.runs, task.work.seed)
    (other,) = supervised(Supervisor(equal), settings=many, campaign="another")
    assert other.work.seed != task.work.seed
    assert other.runs != task.runs


def test_a_wide_spread_is_measured_in_further_processes(supervised: Callable[..., list[Task]]) -> None:
    """The third process gives `other` at 1000 a time that is 5 % longer."""
    wide = Supervisor(lambda name: 105.0 if name == "3/other:1000" else 100.0)
    first, *further = supervised(wide, settings={"most_processes": 8})
    assert len(first.runs) == 12
    assert [names(task) for task in further] == [
        ["4/other:1000", "5/other:1000", "6/other:1000"],
        ["7/other:1000", "8/other:1000"],
    ]
    assert len(supervised(Supervisor(equal), settings={"most_processes": 8})) == 1


def test_the_spread_is_estimated_again_after_the_first_further_processes(
    supervised: Callable[..., list[Task]],
) -> None:
    """Three medians within 0.9 % ask for one more process; that one is 5 % off, so that the case needs many."""
    near = {"1/other:1000": 100.9, "4/other:1000": 105.0}
    _, first, second = supervised(
        Supervisor(lambda name: near.get(name, 100.0)), settings={"most_processes": 15}
    )
    assert names(first) == ["4/other:1000"]
    assert names(second) == [f"{number}/other:1000" for number in range(7, 16)]


def test_further_processes_take_a_bounded_time_per_case(supervised: Callable[..., list[Task]]) -> None:
    """Each takes 50 ms, and the configuration allows 0.21 s."""
    wide = Supervisor(lambda name: 105.0 if name in ("3/other:1000", "5/other:1000") else 100.0)
    wide.seconds = 0.05
    tasks = supervised(wide, settings={"most_processes": 15, "further_seconds": 0.21})
    assert [len(task.runs) for task in tasks] == [12, 3, 1]


def test_a_wide_spread_is_left_as_it_is_if_no_further_process_is_allowed(
    supervised: Callable[..., list[Task]],
) -> None:
    wide = Supervisor(lambda name: 105.0 if name == "3/other:1000" else 100.0)
    assert len(supervised(wide, settings={"most_processes": 3})) == 1


def test_the_start_of_a_worker_is_shared_by_all_variants_also_of_one_that_runs_some_of_them(
    supervised: Callable[..., list[Task]], tmp_path: Path
) -> None:
    """Each stand-in says that its start took its variants 0.5 s each: two of them at first, then `other` alone."""
    wide = Supervisor(lambda name: 105.0 if name == "3/other:1000" else 100.0)
    first, further = supervised(wide, settings={"most_processes": 4})
    assert [{run.variant for run in task.runs} for task in (first, further)] == [
        {"right", "other"},
        {"other"},
    ]
    variants = FamilyRecord.read(tmp_path / "time" / "scale.json", Time).variants
    assert {variant.session.start_seconds for variant in variants.values()} == {0.75}


def test_a_case_that_failed_gets_neither_further_processes_nor_a_sustained_time(
    supervised: Callable[..., list[Task]],
) -> None:
    wide = Supervisor(lambda name: 105.0 if name.startswith("2") else 100.0, limited=("other:64",))
    wide.failing = "3/other:64"
    _, further = supervised(wide, settings={"most_processes": 4})
    assert {(run.variant, run.case) for run in further.runs} == {
        ("right", "64"),
        ("right", "1000"),
        ("other", "1000"),
    }


def test_only_cases_that_a_limit_slows_down_get_a_sustained_time(
    supervised: Callable[..., list[Task]],
) -> None:
    _, sustained = supervised(Supervisor(equal, limited=("right:1000",)))
    assert sustained.work.mode == "sustain"
    assert names(sustained) == ["1/right:1000", "2/right:1000", "3/right:1000"]
    assert len(supervised(Supervisor(equal))) == 1


def test_sustained_times_that_differ_too_much_are_measured_in_further_processes(
    supervised: Callable[..., list[Task]],
) -> None:
    """At most three more."""
    limited = ("right:1000", "other:1000")
    wide = Supervisor(equal, limited, lambda name: 105.0 if name == "3/other:1000" else 100.0)
    _, _, further = supervised(wide)
    assert further.work.mode == "sustain"
    assert names(further) == ["4/other:1000", "5/other:1000", "6/other:1000"]
    narrow = Supervisor(equal, limited, lambda name: 100.7 if name == "3/other:1000" else 100.0)
    assert len(supervised(narrow)) == 2


def test_a_case_without_captures_is_sustained_only_by_the_fast_variants_and_the_baseline(
    supervised: Callable[..., list[Task]], tmp_path: Path
) -> None:
    """`right` takes 100 us, `other` 130 us; both are limited in both cases, and the profilers capture `64` only."""

    def times(name: str) -> float:
        return 130.0 if "other" in name else 100.0

    everywhere = [f"{variant}:{case}" for variant in ("right", "other") for case in ("64", "1000")]
    _, sustained = supervised(Supervisor(times, limited=everywhere))
    pairs = {(run.variant, run.case) for run in sustained.runs}
    assert pairs == {("right", "64"), ("other", "64"), ("right", "1000")}
    slow = FamilyRecord.read(tmp_path / "time" / "scale.json", Time).variants["other"].cases[1]
    assert (slow.case, slow.sustained, slow.no_sustained) == ("1000", None, "not_near_fastest")
    _, sustained = supervised(Supervisor(times, limited=everywhere), baseline="other")
    assert ("other", "1000") in {(run.variant, run.case) for run in sustained.runs}


def test_a_family_with_long_hot_runs_has_sustained_times_for_all_cases(
    supervised: Callable[..., list[Task]],
) -> None:
    _, sustained = supervised(Supervisor(equal), Measuring(hot_seconds=2.0))
    assert len(sustained.runs) == 12
