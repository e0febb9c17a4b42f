"""Parameter search on host functions: results, failing settings, interruptions and output files."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import host_tuning
import pandas as pd
import pytest
import yaml
from msgspec import structs

import made_up_records
from warplog.catalog import family, winners
from warplog.machine import toolchain
from warplog.machine.device import Peaks
from warplog.machine.toolchain import Tool
from warplog.measure import job as measuring
from warplog.measure import supervise
from warplog.measure import tuning as tuning_stage
from warplog.measure.task import CaseRun, Task
from warplog.measure.tuning import finalists
from warplog.measure.tuning import record as tuning_record
from warplog.measure.tuning import search as tuning
from warplog.measure.tuning.search import Search
from warplog.records import door, remarks
from warplog.records.config import TuneSettings
from warplog.records.measured import Session
from warplog.records.requested.duel import Duel
from warplog.records.requested.tune import Tune
from warplog.tables import rows as table_rows
from warplog.tables.verified_records import Source

SETTINGS = 11


def no_fight(*_: object) -> Duel:
    raise AssertionError("no other setting is as fast as the best one")


def finished(place: Path, **how: object) -> Search:
    search = host_tuning.search(place, **how)
    search.run()
    tuning_record.write(search, finalists.decide(search, no_fight))
    search.discard()
    return search


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Search]:
    """Returns the folder of a complete search, and the search."""
    place = tmp_path_factory.mktemp("whole")
    host_tuning.make_place(place)
    return place, finished(place)


def table(place: Path) -> pd.DataFrame:
    return pd.read_parquet(place / "results" / "tune" / "host" / "scale" / "right.parquet")


def winner(place: Path) -> dict[str, object]:
    return yaml.safe_load((place / "kernels" / "scale" / "tuned" / "host" / "right.yaml").read_text())


def test_the_fastest_correct_setting_wins(whole: tuple[Path, Search]) -> None:
    place, search = whole
    assert search.complete
    assert [tuning.name_of(f.setting) for f in search.ranking()[:3]] == ["A1_B2", "A1_B4", "A2_B1"]
    found = winner(place)
    assert found["parameters"] == {"A": 1, "B": 2}
    assert found["score_us"] == pytest.approx(120)
    assert found["default"] == {"parameters": {"A": 2, "B": 2}, "score_us": pytest.approx(220)}
    assert found["runner_up"] == {"parameters": {"A": 1, "B": 4}, "score_us": pytest.approx(140)}
    assert (found["seen"], found["settings"]) == (SETTINGS, SETTINGS)
    assert (found["campaign"], found["driver"], found["nvcc"]) == ("c", "d", "1")


def test_every_setting_is_a_row_with_its_status(whole: tuple[Path, Search]) -> None:
    rows = table(whole[0])
    assert len(rows) == 2 * SETTINGS
    status = {(r.A, r.B): (r.status, r.reason) for r in rows.itertuples()}
    assert status[3, 2][0] == "compile_error"
    assert "three and two do not go together" in status[3, 2][1]
    assert status[2, 4][0] == "crashed"
    assert "SIGSEGV" in status[2, 4][1]
    assert status[4, 4][0] == "wrong"
    assert "all zero" in status[4, 4][1]
    assert Counter(s for s, _ in status.values()) == {"ok": 8, "compile_error": 1, "crashed": 1, "wrong": 1}
    bad = rows[rows.status != "ok"]
    assert bad[["score_us", "median_us", "final_us", "gflops", "rank"]].isna().all(axis=None)


def test_rows_hold_times_resources_and_speed(whole: tuple[Path, Search]) -> None:
    row = table(whole[0]).query("A == 1 and B == 4 and case == '1000'").iloc[0]
    assert row.median_us == pytest.approx(140)
    assert row.gflops == pytest.approx(1000 / 140 / 1e3)
    assert (row.registers_per_thread, row.block_threads, row.shared_bytes, row["rank"]) == (40, 32, 4096, 2)
    assert 0 < row.theoretical_occupancy_pct <= 100
    csv = pd.read_csv(whole[0] / "results" / "tune" / "host" / "scale" / "right.csv")
    assert list(csv.columns) == list(table(whole[0]).columns)


def test_final_has_the_best_the_default_and_the_listed_settings(whole: tuple[Path, Search]) -> None:
    rows = table(whole[0])
    final = {(r.A, r.B) for r in rows[rows.final_us.notna()].itertuples()}
    assert final == {(1, 2), (2, 2), (4, 1)}


def test_large_files_and_working_files_are_removed(whole: tuple[Path, Search]) -> None:
    assert not list((whole[0] / "results").rglob("*.so"))
    assert not (whole[0] / "results" / "tune" / "host" / "scale" / ".right.work").exists()


def test_no_setting_has_a_time_that_is_not_ok(whole: tuple[Path, Search]) -> None:
    record = door.read(whole[1].job.record, Tune)
    bad = next(one for one in record.settings if one.status == "wrong")
    good = next(one for one in record.settings if one.status == "ok")
    for name in ("cases", "score_us"):
        with pytest.raises(ValueError, match="if and only if its status is ok"):
            structs.replace(bad, **{name: getattr(good, name)})


def test_later_builds_use_the_winner_and_other_gpus_the_default(whole: tuple[Path, Search]) -> None:
    families = family.load([whole[0] / "kernels"])
    here = winners.with_winners(families, "host")["scale"].variant("right")
    assert dict(here.parameters) == {"A": 1, "B": 2, "FIXED": 7}
    assert not here.remarks
    elsewhere = winners.with_winners(families, "h200")["scale"].variant("right")
    assert dict(elsewhere.parameters) == {"A": 2, "B": 2, "FIXED": 7}
    assert elsewhere.remarks == (remarks.NotTuned(gpu="h200"),)


@pytest.mark.parametrize(
    ("key", "value", "parameters", "words"),
    [
        ("source_sha256", "0" * 64, {"A": 1, "B": 2}, "found on other for an earlier version of this source"),
        ("seen", 5, {"A": 1, "B": 2}, "measured 5 of 11 settings"),
        (
            "parameters",
            {"A": 1, "B": 1},
            {"A": 2, "B": 2},
            "violates 'not (A == 1 and B == 1)'; tune again",
        ),
        ("parameters", {"A": 9, "B": 1}, {"A": 2, "B": 2}, "not one of [1, 2, 3, 4]"),
    ],
)
def test_winner_that_is_outdated_partial_or_invalid_gets_a_remark(
    whole: tuple[Path, Search], key: str, value: object, parameters: dict[str, int], words: str
) -> None:
    path = whole[0] / "kernels" / "scale" / "tuned" / "other" / "right.yaml"
    winners.write_winner(path, {**winner(whole[0]), key: value})
    variant = winners.with_winners(family.load([whole[0] / "kernels"]), "other")["scale"].variant("right")
    assert words in variant.remarks[0].words()
    assert dict(variant.parameters) == {**parameters, "FIXED": 7}


def test_killed_search_resumes_and_repeats_nothing(tmp_path: Path) -> None:
    host_tuning.make_place(tmp_path)
    (tmp_path / "trap").touch()
    child = [sys.executable, host_tuning.__file__, str(tmp_path)]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(child, check=False, capture_output=True, timeout=100, env=paths).returncode == -9
    journal = tmp_path / "results" / "tune" / "host" / "scale" / ".right.work" / "look" / "journal.jsonl"
    before = [json.loads(line) for line in journal.read_text().splitlines()]
    done = [n["run"]["variant"] for n in before if n["note"] == "result"]
    assert done
    assert "A1_B2" not in done
    compiled = (tmp_path / "compiled").read_text().splitlines()
    (tmp_path / "trap").unlink()
    search = host_tuning.search(tmp_path)
    search.run()
    after = [json.loads(line) for line in journal.read_text().splitlines()]
    begun = Counter(n["run"]["variant"] for n in after if n["note"] == "begin")
    assert begun.pop("A1_B2") == 2
    assert set(begun.values()) == {1}
    assert search.ranking()[0].setting == {"A": 1, "B": 2}
    again = set((tmp_path / "compiled").read_text().splitlines()[len(compiled) :]) & set(compiled)
    finals = {str(search.builds.library(f.setting)) for f in search.findings.values() if f.final}
    assert again <= finals


def test_at_the_time_limit_the_best_so_far_wins_and_a_later_search_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host_tuning.make_place(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "_BATCH", (4, 4))
        patch.setattr(Task, "is_over", lambda task: (tmp_path / "compiled").exists() and _measured(task))
        finished(tmp_path)
    record = door.read(tmp_path / "results" / "tune" / "host" / "scale" / "right.json", Tune)
    assert record.seen == 4
    assert record.reason == "4 of 11 settings measured in 10 minutes"
    assert Counter(table(tmp_path)["status"])["skipped"] == 2 * 7
    assert winner(tmp_path)["seen"] == 4
    first = len((tmp_path / "compiled").read_text().splitlines())
    assert first <= 4 + 4, "only timed settings are compiled, and those of the final once more"
    search = finished(tmp_path)
    assert search.complete
    assert winner(tmp_path)["parameters"] == {"A": 1, "B": 2}
    assert (
        len((tmp_path / "compiled").read_text().splitlines()) - first == 7 + 3
    )  # the remaining settings, and those of the final


def _measured(task: Task) -> bool:
    return Path(task.folder).name == "look" and '"note": "result"' in task.journal.read_text()


def test_another_campaign_does_not_resume_an_unfinished_search(tmp_path: Path) -> None:
    host_tuning.make_place(tmp_path)
    first, second = host_tuning.search(tmp_path), host_tuning.search(tmp_path, campaign="d")
    assert first.task.fingerprint() != second.task.fingerprint()


def late(search: Search, folder: Path) -> Task:
    """A task of one setting, whose deadline has passed."""
    runs = (CaseRun(variant="A1_B2", case="look"),)
    return structs.replace(search.task, runs=runs, folder=str(folder), deadline=0.0)


def test_no_case_starts_after_the_deadline(whole: tuple[Path, Search], tmp_path: Path) -> None:
    assert supervise.run_cases(late(whole[1], tmp_path), 5, print) == ([], Session())


def test_without_a_correct_setting_there_is_no_winner_and_the_record_has_the_reason(tmp_path: Path) -> None:
    host_tuning.make_place(tmp_path)
    source = tmp_path / "kernels" / "scale" / "right.cu"
    source.write_text(
        source.read_text().replace("factor * x[i]", "1.5f * factor * x[i]").replace("raise", "(void)")
    )
    finished(tmp_path)
    record = door.read(tmp_path / "results" / "tune" / "host" / "scale" / "right.json", Tune)
    assert record.status == "wrong"
    assert record.reason.startswith("no setting has a time; the first: case odd: y: 127 of 127 elements")
    assert not (tmp_path / "kernels" / "scale" / "tuned").exists()


def test_worker_ends_before_the_next_setting_after_the_deadline(
    whole: tuple[Path, Search], tmp_path: Path
) -> None:
    task = late(whole[1], tmp_path)
    supervise._open(task)
    door.write(tmp_path / "task.json", task)
    command = [sys.executable, "-m", "warplog.measure.worker.main", str(tmp_path / "task.json")]
    subprocess.run(command, check=True, env=supervise.environment(task.environment), timeout=60)
    notes = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [note["note"] for note in notes] == ["task", "pid", "waiting", "waiting", "session"]


def test_a_search_by_the_names_of_its_files_writes_its_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host_tuning.make_place(tmp_path)
    built = host_tuning.search(tmp_path)
    campaign = tmp_path / "campaign.json"
    door.write(campaign, made_up_records.campaign(campaign="from-the-record"))
    monkeypatch.setattr(tuning_record, "board_of", lambda *_: built.job.gpu)
    made = measuring.make_jobs
    monkeypatch.setattr(
        tuning_record, "make_jobs", lambda **v: [replace(job, backend="numpy") for job in made(**v)]
    )
    monkeypatch.setattr(toolchain, "ensure", lambda extra: None)
    monkeypatch.setattr(toolchain, "find", lambda name: Tool(name, tmp_path / name, "1", ""))
    record = built.job.record
    tuning_stage.tune_variant(
        family_file=tmp_path / "kernels" / "scale" / "family.yaml",
        variant="right",
        gpu="host",
        arch="sm_90",
        settings=TuneSettings(minutes=10.0, timeout_s=20.0),
        time=host_tuning.POLICY,
        campaign=campaign,
        timer=tmp_path / "timer.so",
        record=record,
        cores=2,
        fight=no_fight,
    )
    assert {p.suffix for p in record.parent.iterdir()} == {".json", ".csv", ".parquet"}
    assert winner(tmp_path)["campaign"] == "from-the-record"


def test_row_of_a_variant_has_a_remark_if_it_was_not_tuned_on_this_gpu(whole: tuple[Path, Search]) -> None:
    families = family.load([whole[0] / "kernels"])
    found = {}
    for gpu in ("h200", "host"):
        known = winners.with_winners(families, gpu)
        chosen = {"scale": (known["scale"].variant("right"),)}
        device = structs.replace(whole[1].job.gpu, slug=gpu)
        source = Source(whole[0] / "missing", "live", made_up_records.campaign(device=device))
        peaks = Peaks("sm_90", 1, None, None, None, None, "")
        rows = table_rows.make_rows(source, known, {"scale": ("64",)}, chosen, peaks)
        found[gpu] = remarks.read(rows["variants"][0]["remarks"])
        assert json.loads(rows["variants"][0]["parameters"])["A"] == (2 if gpu == "h200" else 1)
    assert found["h200"] == (remarks.NotTuned(gpu="h200"),)
    assert found["host"] == ()
