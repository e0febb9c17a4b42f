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

from host_family import make_job, make_timer, named
from one_variant import record_of
from warplog.catalog.contract import Measuring
from warplog.core.records import FamilyRecord, Record
from warplog.core.statistics import summarise
from warplog.measure import check_time
from warplog.measure.job import Job
from warplog.measure.supervise import Task
from warplog.measure.worker.main import parts_of, process_of
from warplog.records.config import Config

RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
QUICK = {
    **structs.asdict(Config().time),
    "most_processes": 1,
    "max_seconds": 0.01,
    "hot_seconds": 0.001,
    "timeout_s": 20,
}
CASES = ("64", "1000")


class Place:
    """Two checked variants of the host family, whose launches append `<pid> <variant> <N>` to a file."""

    def __init__(self, folder: Path, body_of_other: str = RIGHT) -> None:
        self.folder = folder
        self._log = folder / "launched"
        bodies = {"right": RIGHT, "other": body_of_other}
        self.jobs = [self._job(name, body) for name, body in bodies.items()]
        check_time.check_family(self.jobs)
        self.check = self.jobs[0].record
        self.record = folder / "time" / "scale.json"
        self._log.unlink()

    def _job(self, name: str, body: str) -> Job:
        note = f'FILE* f = fopen("{self._log}", "a"); fprintf(f, "%d {name} %d\\n", (int)getpid(), a->N); fclose(f);'
        (self.folder / name).mkdir()
        jobs = named(make_job(self.folder / name, note + body), "right", "other")
        job = next(job for job in jobs if job.variant.name == name)
        return replace(
            job, record=self.folder / "check" / "scale.json", scratch=self.folder / f".{name}.work"
        )

    def timing(self, measuring: Measuring | None = None, **settings: object) -> list[Job]:
        """Returns the jobs of the stage time."""
        policy = QUICK | settings
        jobs = [replace(job, record=self.record, settings=policy, campaign="c") for job in self.jobs]
        if measuring:
            jobs = [replace(job, family=structs.replace(job.family, measuring=measuring)) for job in jobs]
        return jobs

    def cases(self) -> dict[str, Record]:
        """Returns the recorded cases by `<variant>:<case>`."""
        variants = FamilyRecord.read(self.record).variants
        return {f"{name}:{case['case']}": case for name in variants for case in variants[name]["cases"]}

    def launched(self) -> set[tuple[str, str, str]]:
        """Returns process ID, variant and N of all launches."""
        return {tuple(line.split()) for line in self._log.read_text().splitlines()}  # type: ignore[misc]

    def forget(self) -> None:
        self._log.unlink()


def processes_of(launched: set[tuple[str, str, str]], variant: str, case: str) -> set[str]:
    return {pid for pid, name, n in launched if (name, n) == (variant, case)}


def test_each_case_runs_in_fresh_processes_that_the_variants_share(tmp_path: Path) -> None:
    place = Place(tmp_path)
    check_time.time_family(place.timing(), place.check, make_timer(tmp_path), CASES)
    launched = place.launched()
    assert {len(processes_of(launched, v, c)) for v in ("right", "other") for c in CASES} == {3}
    assert len({pid for pid, _, _ in launched}) == 3
    for case in place.cases().values():
        assert (case["status"], [one["process"] for one in case["processes"]]) == ("ok", [1, 2, 3])
        assert sum(one["samples"] for one in case["processes"]) == len(case["cold"]["samples_us"])
        assert len({one["seed"] for one in case["processes"]}) == 3
        assert all(len(one["addresses"]) == 2 for one in case["processes"])
    assert not list(tmp_path.glob(".scale.*")), "working files are left behind"
    assert record_of(place.timing()[0])["session"]["seed"] > 0


def test_a_crash_ends_the_case_in_the_other_processes_but_no_other_case(tmp_path: Path) -> None:
    place = Place(tmp_path, f"if (a->N == 1000) abort(); {RIGHT}")
    check_time.time_family(place.timing(), place.check, make_timer(tmp_path), CASES)
    found = place.cases()
    assert [found[name]["status"] for name in ("right:64", "right:1000", "other:64")] == ["ok"] * 3
    crashed = found["other:1000"]
    assert crashed["status"] == "crashed"
    assert "SIGABRT" in crashed["reason"]
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
from warplog.measure import check_time
Path({str(supervisor)!r}).write_text(str(os.getpid()))
jobs = pickle.loads(Path({str(jobs)!r}).read_bytes())
check_time.time_family(jobs, Path({str(place.check)!r}), Path({str(timer)!r}), {CASES!r})
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, timeout=60)
    assert done.returncode == -9, done.stderr.decode()
    assert not place.record.exists()
    journal = tmp_path / ".scale.time.work" / "journal.jsonl"
    notes = [json.loads(line) for line in journal.read_text().splitlines()]
    finished = {note["result"]["case"] for note in notes if "result" in note}
    assert {process_of(name) for name in finished} == {1, 2}
    place.forget()
    go.touch()
    check_time.time_family(place.timing(), place.check, timer, CASES)
    assert len(place.launched()) == 12 - len(finished)
    assert all([p["process"] for p in case["processes"]] == [1, 2, 3] for case in place.cases().values())


def test_a_case_that_a_limit_slows_down_has_a_sustained_time_in_its_record(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (job, _) = place.timing(processes=1, hot_cases="all")
    check_time.time_family([job], place.check, make_timer(tmp_path, limited=64), CASES)
    found = place.cases()
    run = found["right:64"]["sustained"]
    assert run["mean_us"] > 0
    assert run["seconds"] >= 0.35
    (process,) = found["right:64"]["processes"]
    assert run | {"steps": []} == process["sustained"] | {"energy_j": None}
    assert found["right:1000"]["status"] == "ok"
    assert "sustained" not in found["right:1000"]


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

    def __call__(self, task: Task, *_: object) -> tuple[list[Record], Record]:
        self.tasks.append(task)
        return [self._result(task.mode, name) for name in task.cases], {"start_seconds": 0.5}

    def _result(self, mode: str, name: str) -> Record:
        if name == self.failing:
            return {"case": name, "status": "crashed", "reason": "SIGSEGV"}
        own = {
            "case": name,
            "status": "ok",
            "reason": "",
            "process": process_of(name),
            "seconds": self.seconds,
        }
        if mode == "sustain":
            run = {
                "mean_us": self._sustained_us(name),
                "sm_mhz": None,
                "power_w": None,
                "limits": [],
                "steps": [],
                "launches": 1,
                "seconds": 1.0,
            }
            return {**own, "sustained": run}
        samples = [self._median_us(name)] * 10
        summary = summarise(samples).as_record(samples)
        known = dict.fromkeys(("empty_us", "pause_us", "discarded", "not_blocked"), 0)
        cold = {**summary, **known, "held": False, "sm_mhz_samples": []}
        cold |= dict.fromkeys(("sm_mhz", "set_mhz", "full_mhz"))
        state = dict.fromkeys(
            ("sm_mhz", "sm_mhz_min", "sm_mhz_max", "power_w", "power_w_max", "temperature_c")
        )
        more = {"power_kind": "", "throttle_reasons": [], "state_samples": 0, "seed": 1, "addresses": []}
        warm = {"warmup_launches": 3, "first_launch_us": 1.0, "launch_host_us": 1.0}
        limited = ":".join(parts_of(name)) in self._limited
        return {**own, **state, **more, **warm, "cold": cold, "limited": limited}


@pytest.fixture
def supervised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Task]]:
    """Returns a function that times two variants with a stand-in for the workers, and returns the tasks."""
    place = Place(tmp_path)

    def run(supervisor: Supervisor, measuring: Measuring | None = None, **changed: Any) -> list[Task]:
        monkeypatch.setattr(check_time, "run_cases", supervisor)
        jobs = place.timing(measuring, **changed.pop("settings", {}))
        if baseline := changed.pop("baseline", ""):
            jobs = [replace(job, family=structs.replace(job.family, baseline=baseline)) for job in jobs]
        check_time.time_family(
            [replace(job, **changed) for job in jobs], place.check, tmp_path / "timer.so", CASES
        )
        return supervisor.tasks

    return run


def equal(_name: str) -> float:
    return 100.0


def test_the_order_within_a_case_is_random_and_the_same_when_a_run_is_resumed(
    supervised: Callable[..., list[Task]],
) -> None:
    many = {"processes": 12}
    (task,) = supervised(Supervisor(equal), settings=many)
    rounds = [task.cases[i : i + 4] for i in range(0, 48, 4)]
    for number, names in enumerate(rounds, 1):
        assert {process_of(name) for name in names} == {number}
        assert [parts_of(name)[1] for name in names] == ["64", "64", "1000", "1000"], (
            "variants share its inputs"
        )
    assert len({tuple(parts_of(name)[0] for name in names) for names in rounds}) > 1
    (again,) = supervised(Supervisor(equal), settings=many)
    assert (again.cases, again.settings["seed"]) == (task.cases, task.settings["seed"])
    (other,) = supervised(Supervisor(equal), settings=many, campaign="another")
    assert other.settings["seed"] != task.settings["seed"]
    assert other.cases != task.cases


def test_a_wide_spread_is_measured_in_further_processes(supervised: Callable[..., list[Task]]) -> None:
    """The third process gives `other` at 1000 a time that is 5 % longer."""
    wide = Supervisor(lambda name: 105.0 if name == "3/other:1000" else 100.0)
    first, *further = supervised(wide, settings={"most_processes": 8})
    assert len(first.cases) == 12
    assert [task.cases for task in further] == [
        ("4/other:1000", "5/other:1000", "6/other:1000"),
        ("7/other:1000", "8/other:1000"),
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
    assert first.cases == ("4/other:1000",)
    assert second.cases == tuple(f"{number}/other:1000" for number in range(7, 16))


def test_further_processes_take_a_bounded_time_per_case(supervised: Callable[..., list[Task]]) -> None:
    """Each takes 50 ms, and the configuration allows 0.21 s."""
    wide = Supervisor(lambda name: 105.0 if name in ("3/other:1000", "5/other:1000") else 100.0)
    wide.seconds = 0.05
    tasks = supervised(wide, settings={"most_processes": 15, "further_seconds": 0.21})
    assert [len(task.cases) for task in tasks] == [12, 3, 1]


def test_a_wide_spread_is_left_as_it_is_if_no_further_process_is_allowed(
    supervised: Callable[..., list[Task]],
) -> None:
    wide = Supervisor(lambda name: 105.0 if name == "3/other:1000" else 100.0)
    assert len(supervised(wide, settings={"most_processes": 3})) == 1


def test_a_case_that_failed_gets_neither_further_processes_nor_a_sustained_time(
    supervised: Callable[..., list[Task]],
) -> None:
    wide = Supervisor(lambda name: 105.0 if name.startswith("2") else 100.0, limited=("other:64",))
    wide.failing = "3/other:64"
    _, further = supervised(wide, settings={"most_processes": 4})
    assert {parts_of(name) for name in further.cases} == {
        ("right", "64"),
        ("right", "1000"),
        ("other", "1000"),
    }


def test_only_cases_that_a_limit_slows_down_get_a_sustained_time(
    supervised: Callable[..., list[Task]],
) -> None:
    _, sustained = supervised(Supervisor(equal, limited=("right:1000",)))
    assert sustained.mode == "sustain"
    assert sustained.cases == ("1/right:1000", "2/right:1000", "3/right:1000")
    assert len(supervised(Supervisor(equal))) == 1


def test_sustained_times_that_differ_too_much_are_measured_in_further_processes(
    supervised: Callable[..., list[Task]],
) -> None:
    """At most three more."""
    limited = ("right:1000", "other:1000")
    wide = Supervisor(equal, limited, lambda name: 105.0 if name == "3/other:1000" else 100.0)
    _, _, further = supervised(wide)
    assert further.mode == "sustain"
    assert further.cases == ("4/other:1000", "5/other:1000", "6/other:1000")
    narrow = Supervisor(equal, limited, lambda name: 100.7 if name == "3/other:1000" else 100.0)
    assert len(supervised(narrow)) == 2


def test_a_case_without_captures_is_sustained_only_by_the_fast_variants_and_the_baseline(
    supervised: Callable[..., list[Task]],
) -> None:
    """`right` takes 100 us, `other` 130 us; both are limited in both cases, and the profilers capture `64` only."""

    def times(name: str) -> float:
        return 130.0 if parts_of(name)[0] == "other" else 100.0

    everywhere = [f"{variant}:{case}" for variant in ("right", "other") for case in ("64", "1000")]
    _, sustained = supervised(Supervisor(times, limited=everywhere))
    pairs = {parts_of(name) for name in sustained.cases}
    assert pairs == {("right", "64"), ("other", "64"), ("right", "1000")}
    _, sustained = supervised(Supervisor(times, limited=everywhere), baseline="other")
    assert ("other", "1000") in {parts_of(name) for name in sustained.cases}


def test_a_family_with_long_hot_runs_has_sustained_times_for_all_cases(
    supervised: Callable[..., list[Task]],
) -> None:
    _, sustained = supervised(Supervisor(equal), Measuring(hot_seconds=2.0))
    assert len(sustained.cases) == 12
