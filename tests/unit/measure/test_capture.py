"""One profiler session for all variants of a family: who takes part, how a broken session recovers, what is reused."""

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from stand_in_workers import Workers

from host_family import make_job, named
from report_files import Launch, write_ncu
from warplog.catalog.contract import Measuring
from warplog.extract import sessions
from warplog.machine import wsl
from warplog.machine.toolchain import Tool
from warplog.measure.job import Job
from warplog.measure.stages import capture
from warplog.measure.stages.check import check_family
from warplog.records.config import CheckSettings, ProfileSettings
from warplog.records.family_file import FamilyRecord
from warplog.records.profile import Profile

RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
NCU = Tool("ncu", Path("/opt/ncu"), "2025.3.1", "")
SETTINGS = ProfileSettings(metrics="lean", launches=3, timeout_s=9.0)
NAMES = ("right", "other", "third")


@pytest.fixture
def profiler(monkeypatch):
    workers = Workers()
    monkeypatch.setattr(capture, "run_cases", workers)
    return workers


def family(folder: Path, bodies=(RIGHT, RIGHT, RIGHT)) -> list[Job[CheckSettings]]:
    """Returns checked jobs of three variants."""
    jobs = []
    for place, (name, body) in enumerate(zip(NAMES, bodies, strict=True)):
        (folder / name).mkdir(exist_ok=True)
        job = named(make_job(folder / name, body), *NAMES)[place]
        record = folder / "check" / "scale.json"
        jobs.append(replace(job, record=record, scratch=record.with_name(f".{name}.work")))
    check_family(jobs)
    return jobs


def run(folder: Path, jobs: list[Job], tool: Tool = NCU, inputs: str = "same") -> dict[str, Profile]:
    """Captures the family and returns the records by variant."""
    check, record = jobs[0].record, folder / "profile" / "scale.ncu.json"
    jobs = [replace(job, record=record, settings=SETTINGS, inputs_sha256=inputs) for job in jobs]
    capture.capture_ncu(jobs, check, tool, dict.fromkeys(NAMES, ("64",)))
    return FamilyRecord.read(record, Profile).variants


def reports(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "profile" / "scale").glob("*.ncu-rep"))


def test_all_variants_share_one_session_and_its_report(tmp_path, profiler):
    found = run(tmp_path, family(tmp_path))
    assert profiler.variants() == [list(NAMES)]
    assert {record.status for record in found.values()} == {"ok"}
    assert {record.report for record in found.values()} == set(reports(tmp_path))
    assert len(reports(tmp_path)) == 1


def test_a_variant_that_breaks_the_session_is_recorded_and_the_others_are_captured(tmp_path, profiler):
    profiler.statuses["other"] = "crashed"
    found = run(tmp_path, family(tmp_path))
    assert profiler.variants() == [list(NAMES), ["right", "third"]]
    assert [found[name].status for name in NAMES] == ["ok", "crashed", "ok"]
    assert found["other"].report == ""
    assert (tmp_path / "profile" / "scale" / found["third"].report).read_text() == "right:64 third:64"


def test_the_report_of_a_broken_session_is_not_taken_for_the_report_of_the_next(tmp_path, profiler):
    profiler.statuses["other"] = "crashed"
    profiler.silent = {1, 2}
    found = run(tmp_path, family(tmp_path))
    assert [found[name].status for name in NAMES] == ["error", "crashed", "error"]
    assert "ncu ended without a report" in found["right"].reason
    assert reports(tmp_path) == []


def test_a_session_without_a_report_is_repeated_once(tmp_path, profiler):
    profiler.silent = {0}
    found = run(tmp_path, family(tmp_path))
    assert profiler.variants() == [list(NAMES), list(NAMES)]
    assert {record.status for record in found.values()} == {"ok"}


def test_reports_that_no_entry_refers_to_are_deleted(tmp_path, profiler):
    first = run(tmp_path, family(tmp_path))
    second = run(tmp_path, family(tmp_path, (RIGHT, "a->y[0] = 1;" + RIGHT, RIGHT)))
    assert sorted({first["right"].report, second["other"].report}) == reports(tmp_path)
    third = run(tmp_path, family(tmp_path), inputs="another policy")
    assert reports(tmp_path) == [third["right"].report]


def test_nothing_is_captured_of_a_family_that_excludes_the_profiler(tmp_path, profiler):
    without = Measuring(profilers=["nsys"])
    jobs = [replace(j, family=structs.replace(j.family, measuring=without)) for j in family(tmp_path)]
    right = run(tmp_path, jobs)["right"]
    assert (right.status, right.reason) == (
        "skipped",
        "n/a: ncu cannot observe what this family measures",
    )
    assert (right.report, right.cases[0].status, profiler.tasks) == ("", "skipped", [])


def test_the_key_of_a_capture_says_what_is_collected_and_not_where_the_project_is(tmp_path, profiler):
    keys = []
    for place in (tmp_path / "here", tmp_path / "there"):
        place.mkdir()
        jobs, record = family(place), place / "profile" / "scale.ncu.json"
        stage = capture.NcuStage(jobs[0].record, NCU, {"right": ("64",)})
        for metrics in ("lean", "all", "sections"):
            settings = ProfileSettings(metrics=metrics)
            job = replace(jobs[0], record=record, settings=settings, inputs_sha256="same")
            keys.append(stage.part(job).inputs_sha256)
    assert keys[:3] == keys[3:]
    assert len(set(keys)) == 3


def test_of_a_variant_that_excludes_the_profiler_nothing_is_captured_but_of_the_others(tmp_path, profiler):
    jobs = [
        replace(j, variant=structs.replace(j.variant, profilers=["nsys"])) if j.variant.name == "right" else j
        for j in family(tmp_path)
    ]
    found = run(tmp_path, jobs)
    assert (found["right"].status, found["right"].reason) == (
        "skipped",
        "n/a: ncu cannot observe what this variant launches",
    )
    assert found["other"].status == "ok"


def test_a_missing_profiler_is_recorded_with_the_remedy(tmp_path, profiler):
    jobs = family(tmp_path)
    run(tmp_path, jobs)
    missing = run(tmp_path, jobs, Tool("ncu", None, None, "install it"))
    assert {record.status for record in missing.values()} == {"missing"}
    assert {record.report for record in missing.values()} == {""}
    assert "install it" in missing["right"].cases[0].reason
    assert reports(tmp_path) == []


def test_both_profilers_can_run_at_the_same_time_for_a_family(tmp_path, monkeypatch):
    folders = []

    def noted(task, *_, **__):
        folders.append(task.folder)
        raise capture.WarplogError("the folder is known")

    monkeypatch.setattr(capture, "run_cases", noted)
    jobs = family(tmp_path)
    run(tmp_path, jobs)
    place = [replace(j, settings=SETTINGS, record=tmp_path / "profile" / "scale.nsys.json") for j in jobs]
    capture.capture_nsys(place, jobs[0].record, NCU, dict.fromkeys(NAMES, ("64",)))
    assert len(set(folders)) == 2


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("ERR_NVGPUCTRPERM - The user ...", "(`warplog doctor` shows how)"),
        (
            "Profiling failed because a driver resource was unavailable or the user does not have permission to"
            " access NVIDIA GPU Performance Counters. See https://developer.nvidia.com/ERR_NVGPUCTRPERM.",
            "DCGM",
        ),
    ],
)
def test_a_session_without_permission_is_denied_for_all(tmp_path, profiler, monkeypatch, output, expected):
    def refused(task, *_, **__):
        Path(task.folder).mkdir(parents=True, exist_ok=True)
        Path(task.folder, "worker.log").write_text(f"==ERROR== {output}")
        raise capture.WarplogError("the worker failed")

    monkeypatch.setattr(capture, "run_cases", refused)
    found = run(tmp_path, family(tmp_path))
    assert {record.status for record in found.values()} == {"denied"}
    assert all("counters are not permitted" in record.reason for record in found.values())
    assert expected in found["right"].reason
    assert ("DCGM" in found["right"].reason) == (expected == "DCGM")


def test_in_wsl_the_remedy_for_denied_counters_is_on_windows(tmp_path, monkeypatch):
    log = tmp_path / "worker.log"
    log.write_text("==ERROR== ERR_NVGPUCTRPERM - The user ...")
    assert "NVreg_RestrictProfilingToAdminUsers=0" in capture.diagnose(log, "")[1]
    monkeypatch.setattr(wsl, "DEVICE", tmp_path)
    status, reason = capture.diagnose(log, "")
    assert status == "denied"
    assert "NVIDIA Control Panel" in reason
    assert "NVreg" not in reason


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("==ERROR== The application returned an error code (71).", "the worker failed: no such module"),
        ("==ERROR== Failed to access the following metrics: x\n==ERROR== The application ...", "metrics: x"),
    ],
)
def test_errors_of_ncu_take_precedence_over_the_end_of_the_worker(tmp_path, monkeypatch, output, expected):
    def failed(task, *_, **__):
        Path(task.folder).mkdir(parents=True, exist_ok=True)
        Path(task.folder, "worker.log").write_text(output)
        raise capture.WarplogError("the worker failed: no such module")

    monkeypatch.setattr(capture, "run_cases", failed)
    found = run(tmp_path, family(tmp_path))
    assert {record.status for record in found.values()} == {"error"}
    assert found["right"].reason.endswith(expected)


def test_a_variant_gets_its_own_launches_of_a_session(tmp_path):
    launches = [
        Launch("k", {"gpu__time_duration.sum": 1.0}, ("case:right:64", "launch:0")),
        Launch("k", {"gpu__time_duration.sum": 2.0}, ("case:other:64", "launch:0")),
        Launch("stray", {"gpu__time_duration.sum": 3.0}, ()),
    ]
    path = write_ncu(tmp_path / "session.ncu-rep", launches)
    own = sessions.ncu(path, "other").launches
    assert [(x.function, x.ranges) for x in own] == [("k", ("case:64", "launch:0")), ("stray", ())]
    assert own[0].counters["gpu__time_duration.sum"] == 2.0
