"""`warplog record` keeps a live campaign packed, and refuses one made from recorded tables or that is too large."""

import hashlib
import json
import lzma
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import recorded_campaigns
from stopped_process import Stopped, stop_at
from warplog.cli.main import main
from warplog.cli.recording import record_campaign
from warplog.core import store
from warplog.core.errors import WarplogError
from warplog.judge.campaigns import Sources, recorded_campaign
from warplog.records import door
from warplog.records.config import Config
from warplog.records.verification import manifest
from warplog.tables.files import read_table
from warplog.worklog.audit import audit

INTERRUPTED = "its replacement was interrupted and had left it as .mine.old\n"
CAMPAIGN = recorded_campaigns.campaign(campaign="h200-2026-01-01-abcdef0", commit="abcdef0")


def campaign(project: Path, origin: str = "live") -> Path:
    results = project / "results"
    door.write(results / "campaign" / "h200.json", CAMPAIGN)
    for name in (
        "time/h200/sgemm.json",
        "timeline/h200/sgemm.json",
        "timeline/build/sm_90/sgemm/naive/record.json",
        "aa/round1/time/h200/sgemm.json",
        "aa/floors.csv",
        "tables/measurements.csv",
        "tables/gpus.csv",
        "tables/gpus.parquet",
        "build/sm_90/sgemm/naive/record.json",
        "worklog/sgemm.md",
        "figures/sgemm/ladder.png",
        "figures/sgemm/roofline.png",
    ):
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        (results / name).write_text(f"family,origin,x\nsgemm,{origin},1\n")
    for name in (
        "build/sm_90/sgemm/naive/kernel.so",
        "timeline/h200/sgemm/naive.json.gz",
        "profile/h200/sgemm/session-1.ncu-rep",
    ):
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        (results / name).write_bytes(b"x" * 1000)
    return results


KEPT = {
    "campaign/h200.json",
    *(f"records/{stage}.tar.xz" for stage in ("aa", "build", "time", "timeline")),
    "tables/measurements.csv",
    "tables/gpus.parquet",
    "manifest.json",
}


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    compress = lzma.compress
    monkeypatch.setattr(store.lzma, "compress", lambda data, preset: compress(data, preset=0))


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_keeps_packed_records_and_tables_and_nothing_else(tmp_path: Path) -> None:
    results = campaign(tmp_path)
    folder, size = record_campaign(tmp_path, "h200")
    assert files_in(folder) == KEPT
    assert size == sum((folder / name).stat().st_size for name in KEPT)
    for name in ("time/h200/sgemm.json", "aa/round1/time/h200/sgemm.json"):
        assert store.read(folder / name, 1000, "") == (results / name).read_bytes()


def test_the_figures_that_the_readme_shows_are_kept(tmp_path: Path) -> None:
    campaign(tmp_path)
    shown = (
        "results/recorded/h200/figures/sgemm/ladder.png) ![](results/recorded/a/figures/sgemm/roofline.png)"
    )
    (tmp_path / "README.md").write_text(f"![]({shown}")
    assert files_in(record_campaign(tmp_path, "h200")[0]) == KEPT | {"figures/sgemm/ladder.png"}


def test_recording_the_same_campaign_again_gives_the_same_bytes(tmp_path: Path) -> None:
    results = campaign(tmp_path)
    folder, _ = record_campaign(tmp_path, "h200")
    before = {name: (folder / name).read_bytes() for name in KEPT}
    for path in results.rglob("*/sgemm.json"):
        path.touch()
    record_campaign(tmp_path, "h200", replaces=True)
    assert {name: (folder / name).read_bytes() for name in KEPT} == before


def test_a_campaign_above_the_limit_is_refused_with_the_sizes_of_its_parts(tmp_path: Path) -> None:
    results = campaign(tmp_path)
    (results / "tables" / "gpus.parquet").write_bytes(os.urandom(15_000_000))
    (results / "time" / "h200" / "scan.json").write_bytes(os.urandom(2_000_000))
    words = (
        r"17.0 MB, over the limit of 16 MB for recorded campaigns \(tables 15.0, records/time.tar.xz 2.0,"
        r".*; measure fewer families"
    )
    with pytest.raises(WarplogError, match=words):
        record_campaign(tmp_path, "h200")
    assert not list((tmp_path / "results" / "recorded").glob("*"))


def test_two_models_measured_in_one_folder_are_not_recorded_as_one_campaign(tmp_path: Path) -> None:
    folder = campaign(tmp_path) / "campaign"
    shutil.copy(folder / "h200.json", folder / "h100.json")
    with pytest.raises(
        WarplogError, match=r"2 live campaigns.*each model in a folder of its own \(--directory\)"
    ):
        record_campaign(tmp_path, "mine")


def test_the_manifest_names_the_commit_and_the_digest_of_every_other_file(tmp_path: Path) -> None:
    campaign(tmp_path)
    folder, _ = record_campaign(tmp_path, "h200")
    written = door.read(folder / "manifest.json", manifest.Manifest)
    assert (written.campaign, written.commit) == (CAMPAIGN.campaign, CAMPAIGN.commit)
    assert set(written.files) == KEPT - {"manifest.json"}
    text = b"family,origin,x\nsgemm,live,1\n"
    assert written.files["tables/measurements.csv"] == hashlib.sha256(text).hexdigest()


def flip_a_bit(folder: Path) -> None:
    path = folder / "records" / "time.tar.xz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def add_entry(folder: Path, name: str) -> None:
    """Adds a file outside of the folder to the manifest, with its true digest if there is one."""
    (folder.parent / "outside.json").write_text("{}")
    written = json.loads((folder / "manifest.json").read_text())
    written["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(written))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (flip_a_bit, "records/time.tar.xz: was changed after it was written"),
        (
            lambda f: (f / "tables/gpus.parquet").write_text("sgemm,live,9"),
            "tables/gpus.parquet: was changed after it was written",
        ),
        (lambda f: (f / "tables/gpus.parquet").unlink(), "tables/gpus.parquet: is missing"),
        (
            lambda f: (f / "records/more.json").write_text("{}"),
            "records/more.json: is not in manifest.json",
        ),
        (
            lambda f: (f / "records/.more.json").write_text("{}"),
            "records/.more.json: is not in manifest.json",
        ),
        (
            lambda f: (
                (f / "tables/gpus.parquet").rename(f.parent / "gpus.parquet")
                and (f / "tables/gpus.parquet").symlink_to(f.parent / "gpus.parquet")
            ),
            "tables/gpus.parquet: is a symbolic link",
        ),
        (lambda f: (f / "records/more").symlink_to("/etc"), "records/more: is a symbolic link"),
        (
            lambda f: add_entry(f, "../outside.json"),
            "manifest.json: '../outside.json' leads out of the folder",
        ),
        (lambda f: add_entry(f, "/etc/passwd"), "manifest.json: '/etc/passwd' leads out of the folder"),
    ],
)
def test_a_campaign_edited_by_hand_is_refused_on_one_line(
    tmp_path: Path, change: Callable[[Path], object], words: str
) -> None:
    campaign(tmp_path)
    folder, _ = record_campaign(tmp_path, "mine")
    settings = Config(mode="recorded", recorded="mine")
    assert recorded_campaign(settings, tmp_path)[0] == folder
    change(folder)
    with pytest.raises(WarplogError) as error:
        recorded_campaign(settings, tmp_path)
    assert f"{folder}/{words}" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_campaign_without_a_manifest_is_refused_with_the_command_that_writes_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    results = campaign(tmp_path)
    for stage in ("aa", "time", "timeline", "build"):
        shutil.rmtree(results / stage)  # stand-ins, not records
    folder, _ = record_campaign(Path(), "mine")
    manifest = folder / "manifest.json"
    before = manifest.read_bytes()
    manifest.unlink()
    settings = Config(mode="recorded", recorded="mine")
    (folder / "time" / "h200").mkdir(parents=True)
    readers: list[Callable[[], object]] = [
        lambda: recorded_campaign(settings, Path()),
        lambda: Sources(Path()).load("mine"),
        lambda: Sources(Path()).load(f"{folder}/"),
        lambda: read_table(folder / "tables", "variants"),
        lambda: audit(folder, sys.stdout),
    ]
    for read in readers:
        with pytest.raises(
            WarplogError, match=rf"has no manifest.json.*`warplog verify .*{folder} .*` writes"
        ):
            read()
    assert main(["verify", str(folder)]) == 1
    remedy = re.search(r"`warplog (verify .*?)` writes one and trusts the files", capsys.readouterr().err)
    assert remedy
    link = folder / "tables" / "link.csv"
    link.symlink_to("gpus.parquet")
    assert main(remedy[1].split()) == 1
    assert "link.csv: is a symbolic link" in capsys.readouterr().err
    assert not manifest.exists()
    link.unlink()
    assert main(remedy[1].split()) == 0
    assert "from now on, its files as they are count as those that were measured" in capsys.readouterr().out
    assert manifest.read_bytes() == before
    assert recorded_campaign(settings, Path())[0] == folder
    assert main(["verify", str(folder), "--write-manifest"]) == 1
    assert "has a manifest already" in capsys.readouterr().err


def test_a_recorded_campaign_is_replaced_only_if_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = campaign(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["record", "h200"]) == 0
    shutil.rmtree(results / "time")
    folder = tmp_path / "results" / "recorded" / "h200"
    assert main(["record", "h200"]) == 1
    said = capsys.readouterr().err
    assert f"{folder}: exists; choose another name, or replace it with --replace" in said
    assert (folder / "records" / "time.tar.xz").is_file()
    assert main(["record", "h200", "--replace"]) == 0
    assert not (folder / "records" / "time.tar.xz").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["h200"], "nothing is left beside it"


def test_a_replacement_that_stops_at_any_step_leaves_a_whole_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    restored = []
    for step in range(1000):
        place = tmp_path / str(step)
        results = campaign(place)
        for stage in ("aa", "build", "profile", "timeline"):
            shutil.rmtree(results / stage)
        folder, _ = record_campaign(place, "mine")
        (results / "tables" / "new.parquet").write_text("new")
        try:
            with pytest.MonkeyPatch.context() as patch:
                stop_at(step, patch)
                record_campaign(place, "mine", replaces=True)
        except Stopped:
            pass
        else:
            break
        was_there = folder.is_dir()
        with pytest.raises(WarplogError, match="exists; choose another name"):
            record_campaign(place, "mine")
        said = capsys.readouterr().err
        assert said == ("" if was_there else f"{folder}: restored; {INTERRUPTED}")
        restored.append(not was_there)
        manifest.check(folder)
        record_campaign(place, "mine", replaces=True)
        assert (folder / "tables" / "new.parquet").is_file()
        assert [path.name for path in folder.parent.iterdir()] == ["mine"]
    assert len(restored) > 15
    assert restored.count(True) == 1


@pytest.mark.parametrize("name", ["../h200", "H200", "a/b", ""])
def test_a_name_cannot_leave_its_folder(tmp_path: Path, name: str) -> None:
    campaign(tmp_path)
    with pytest.raises(WarplogError, match="consists of lower-case letters"):
        record_campaign(tmp_path, name)


def test_tables_of_a_recorded_campaign_are_not_recorded_again(tmp_path: Path) -> None:
    campaign(tmp_path, origin="recorded")
    with pytest.raises(WarplogError, match="are not live"):
        record_campaign(tmp_path, "h200")
    assert not (tmp_path / "results" / "recorded").exists()


def test_unfinished_campaign_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        WarplogError, match="0 live campaigns, expected one; run `snakemake` on a machine with a GPU"
    ):
        record_campaign(tmp_path, "h200")
