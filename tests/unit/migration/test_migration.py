"""`warplog migrate` carries a folder of version 1 to the present format, or leaves it as it is."""

import json
import lzma
import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recorded_campaigns import unpacked
from stopped_process import Stopped, stop_at
from warplog.cli.main import main
from warplog.core import store
from warplog.core.errors import WarplogError
from warplog.migration import migrated
from warplog.migration.folder import migrate
from warplog.records import door
from warplog.records.build import Build
from warplog.records.family_file import FamilyRecord
from warplog.records.stages import RECORDED
from warplog.records.time import Time
from warplog.records.verification import manifest

FAMILY = "transfer"  # its times have a remark, since they include the host
BUILD = "build/sm_90/transfer/to_device_pinned/record.json"
SENTENCES = {
    "host_time": "with the host's part of each launch",
    "few_samples": "only {samples} samples",
    "discarded": "{dropped} of {taken} launches discarded: set SM clock below {below_mhz:.0f} MHz",
}


def version_1(record: dict[str, Any]) -> dict[str, Any]:
    """Returns a record as the release before wrote it."""
    old = {**record, "schema": 1}
    if record["stage"] == "time":
        old["cases"] = [timed(case) for case in record["cases"]]
    return old


def timed(case: dict[str, Any]) -> dict[str, Any]:
    absent = {"board", "no_hot", "no_sustained", "remarks"} | {key for key in case if case[key] is None}
    old = {key: value for key, value in case.items() if key not in absent} | (case["board"] or {})
    sentences = [SENTENCES[remark["code"]].format(**remark) for remark in case["remarks"]]
    return {**old, "reason": "; ".join(sentences) or case["reason"]}


def as_not_recorded(record: dict[str, Any]) -> dict[str, Any]:
    """Returns a record without what version 1 did not hold."""
    if record["stage"] == "time":
        for case in record["cases"]:
            case |= {f"no_{name}": case[f"no_{name}"] and "not_recorded" for name in ("hot", "sustained")}
    return record


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A results folder of version 1 with the records of one family, and tables."""
    monkeypatch.chdir(tmp_path)
    whole = unpacked("h200")
    for path in (*whole.glob(f"*/h200/{FAMILY}.*json"), whole / BUILD, whole / "campaign" / "h200.json"):
        data = json.loads(path.read_text())
        if "variants" in data:
            old = {**data, "schema": 1, "variants": {n: version_1(r) for n, r in data["variants"].items()}}
        else:
            old = version_1(data)
        target = Path("results") / path.relative_to(whole)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(old))
        os.utime(target, (1e9, 1e9))
    tables = Path("results") / "tables"
    tables.mkdir()
    rows = pd.DataFrame({"status": ["ok"], "reason": ["only 4 samples"], "case": ["1"]})
    rows.to_parquet(tables / "variants.parquet", index=False)
    (tables / "variants.csv").write_text("status,reason,case\nok,only 4 samples,1\n")
    return Path("results")


@pytest.fixture
def campaign(results: Path) -> Path:
    """The same as a recorded campaign with its manifest, beside figures, pages and reports that it had."""
    folder = results / "recorded" / "old"
    folder.mkdir(parents=True)
    for part in [path for path in results.iterdir() if path.name != "recorded"]:
        part.rename(folder / part.name)
    for name in ("figures/transfer/ladder.png", "figures/transfer/other.png", "worklog/transfer.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("kept?")
    Path("Snakefile").touch()
    Path("README.md").write_text("![](results/recorded/old/figures/transfer/ladder.png)")
    write_old_manifest(folder)
    return folder


def write_old_manifest(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != manifest.NAME]
    digests = {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}
    head = {"schema": 1, "campaign": "old", "commit": "abc", "warplog": "0.1.0", "files": digests}
    (folder / manifest.NAME).write_text(json.dumps(head))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


def quiet(line: str) -> None:
    """Says nothing."""


def test_the_records_are_those_of_the_campaign_and_keep_their_times(results: Path) -> None:
    migrate(results, quiet)
    whole = unpacked("h200")
    for stage in RECORDED:
        for path in stage.files(results) if stage.of_family else []:
            records = FamilyRecord.read(path, stage.record).variants
            before = FamilyRecord.read(whole / path.relative_to(results), stage.record).variants
            assert {n: door.plain(r) for n, r in records.items()} == {
                n: as_not_recorded(door.plain(r)) for n, r in before.items()
            }
            assert path.stat().st_mtime == 1e9
    timed = FamilyRecord.read(results / "time" / "h200" / f"{FAMILY}.json", Time).variants
    assert any(case.remarks for record in timed.values() for case in record.cases)
    assert door.read(results / BUILD, Build) == door.read(whole / BUILD, Build)
    assert list(pd.read_parquet(results / "tables" / "variants.parquet")["remarks"]) == [
        '[{"code": "few_samples", "samples": 4}]'
    ]
    assert "few_samples" in (results / "tables" / "variants.csv").read_text()


def test_it_says_what_it_did_and_the_second_time_does_nothing(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warplog.core.locks.hold_folder", lambda folder: None)  # until this process ends
    assert main(["migrate", "results"]) == 0
    said = capsys.readouterr().out
    assert "  time      1 file carried over\n" in said
    assert "  profile   2 files carried over\n" in said
    before = contents(results)
    assert main(["migrate", "results"]) == 0
    assert capsys.readouterr().out == "results: is in the present format\n"
    assert contents(results) == before


def test_a_record_of_version_1_is_refused_with_the_command_that_carries_it_over(results: Path) -> None:
    path = results / "time" / "h200" / f"{FAMILY}.json"
    with pytest.raises(WarplogError, match=rf"^{path}: was written by an earlier release.*warplog migrate"):
        FamilyRecord.read(path, Time)


def test_an_unknown_remark_is_refused_with_its_file_and_nothing_changes(
    results: Path, campaign: Path
) -> None:
    path = campaign / "time" / "h200" / f"{FAMILY}.json"
    data = json.loads(path.read_text())
    case = next(iter(data["variants"].values()))["cases"][0]
    case["reason"] = "only 4 samples; a cat sat on the board"
    path.write_text(json.dumps(data))
    write_old_manifest(campaign)
    before = contents(results)
    with pytest.raises(WarplogError, match="the remark 'a cat sat on the board' is not known") as error:
        migrate(campaign, quiet)
    assert str(error.value).startswith(f"{path}: variants.")
    assert f"case {case['case']}: " in str(error.value)
    assert contents(results) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda variants: next(iter(variants.values())).pop("cases"),
        lambda variants: next(iter(variants.values())).update(cases=[3]),
        lambda variants: next(iter(variants.values())).update(more=1),
        lambda variants: next(iter(variants.values())).update(stage="tiem"),
        lambda variants: variants.clear(),
    ],
)
def test_what_is_no_record_of_version_1_is_refused_in_one_line(
    results: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    path = results / "time" / "h200" / f"{FAMILY}.json"
    data = json.loads(path.read_text())
    change(data["variants"])
    path.write_text(json.dumps(data))
    before = contents(results)
    with pytest.raises(WarplogError) as error:
        migrate(results, quiet)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)
    assert contents(results) == before


def test_a_recorded_campaign_is_packed_and_holds_nothing_that_is_not_kept(campaign: Path) -> None:
    migrate(campaign, quiet)
    kept = {str(path.relative_to(campaign)) for path in campaign.rglob("*") if path.is_file()}
    stages = ("accesses", "build", "check", "extract", "profile", "sanitize", "time")
    assert kept == {
        *(f"records/{stage}.tar.xz" for stage in stages),
        *("campaign/h200.json", "tables/variants.parquet", "tables/columns.csv", "manifest.json"),
        "figures/transfer/ladder.png",
    }
    assert manifest.problems(campaign) == []
    path = campaign / "time" / "h200" / f"{FAMILY}.json"
    assert not path.exists()
    assert FamilyRecord.read(path, Time).variants
    assert [entry.name for entry in campaign.parent.iterdir()] == ["old"], "nothing is left beside it"
    before = contents(campaign)
    migrate(campaign, quiet)
    assert contents(campaign) == before


def test_a_recorded_campaign_that_was_changed_is_refused(campaign: Path) -> None:
    path = campaign / "time" / "h200" / f"{FAMILY}.json"
    path.write_text(path.read_text() + " ")
    with pytest.raises(WarplogError, match=rf"^{path}: was changed after it was written"):
        migrate(campaign, quiet)
    assert path.is_file()


@pytest.mark.parametrize("kind", ["results", "campaign"])
def test_a_migration_that_stops_at_any_step_goes_on_where_it_was(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder: Path = request.getfixturevalue(kind)
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    compress = lzma.compress
    monkeypatch.setattr(store.lzma, "compress", lambda data, preset: compress(data, preset=0))
    before = folder.parent / "before"
    shutil.copytree(folder, before)
    whole: dict[str, bytes] = {}
    for step in range(0, 1000, 5):
        shutil.rmtree(folder)
        shutil.copytree(before, folder)
        try:
            with pytest.MonkeyPatch.context() as patch:
                stop_at(step, patch)
                migrate(folder, quiet)
        except Stopped:
            pass
        else:
            break
        migrate(folder, quiet)
        after = {str(path.relative_to(folder)): data for path, data in contents(folder).items()}
        whole = whole or after
        assert after == whole, step
    assert step > 20


def test_a_record_of_a_tracking_store_is_carried_over_when_it_is_read(results: Path) -> None:
    path = results / "time" / "h200" / f"{FAMILY}.json"
    (record, *_) = json.loads(path.read_text())["variants"].values()
    carried_over = migrated(record, "run 1")
    assert door.plain(door.decode(carried_over, Time, "run 1")) == carried_over
    assert carried_over["schema"] == 2
    assert migrated(carried_over, "run 1") is carried_over
