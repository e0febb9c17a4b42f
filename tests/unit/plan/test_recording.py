"""`warplog record` copies a live campaign without its large files, and refuses one made from recorded tables."""

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from made_up_campaigns import H200
from one_variant import write_record
from warplog.cli.main import main
from warplog.cli.recording import record_campaign
from warplog.core.defaults import DEFAULTS
from warplog.core.errors import WarplogError
from warplog.core.records import read_json, write_json
from warplog.judge.audit import audit
from warplog.judge.sources import Sources, recorded_campaign
from warplog.records import manifest
from warplog.tables.files import read_table

INTERRUPTED = "`warplog record --replace` was interrupted and had left it as .mine.old\n"

CAMPAIGN = {
    "schema": 1,
    "stage": "campaign",
    "campaign": "h200-2026-01-01-abcdef0",
    "gpu": "h200",
    "gpu_name": "NVIDIA H200",
    "arch": "sm_90",
    "origin": "live",
    "commit": "abcdef0",
    "content_sha256": "0" * 64,
    "started": "2026-01-01T00:00:00Z",
    "driver": "580.0",
    "cuda": "13.0",
    "device": H200,
    "tools": {},
    "clocks": "unlocked",
}


PROFILE = {
    **{key: CAMPAIGN[key] for key in ("schema", "gpu", "origin")},
    **{"stage": "profile", "family": "sgemm", "variant": "naive", "status": "ok", "reason": "", "cases": []},
    **{"source_sha256": "", "library_sha256": "", "tool": "ncu", "tool_version": "", "command": []},
    "report": "session-1.ncu-rep",
    "provenance": {
        **dict.fromkeys(("gpu_name", "gpu_uuid", "compute_capability", "driver", "finished", "clocks"), ""),
        "content_sha256": "",
    },
}


def campaign(project: Path, origin: str = "live", profiled: bool = False) -> Path:
    results = project / "results"
    write_json(results / "campaign" / "h200.json", CAMPAIGN, "record")
    for name in (
        "time/h200/sgemm.json",
        "timeline/h200/sgemm.json",
        "timeline/build/sm_90/sgemm/naive/record.json",
        "aa/round1/time/h200/sgemm.json",
        "aa/floors.csv",
        "tables/measurements.csv",
        "build/sm_90/sgemm/naive/record.json",
    ):
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        (results / name).write_text(f"family,origin,x\nsgemm,{origin},1\n")
    for name in (
        "build/sm_90/sgemm/naive/kernel.so",
        "timeline/h200/sgemm/naive.json.gz",
        "profile/h200/sgemm/session-1.ncu-rep",
        "profile/h200/sgemm/session-2.ncu-rep",
    ):
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        (results / name).write_bytes(b"x" * 1000)
    if profiled:
        write_record(results / "profile" / "h200" / "sgemm.ncu.json", PROFILE)
    return results


def test_copies_records_and_tables_without_large_files(tmp_path: Path) -> None:
    campaign(tmp_path)
    folder, size = record_campaign(tmp_path, "h200")
    kept = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert kept == {
        "campaign/h200.json",
        "time/h200/sgemm.json",
        "timeline/h200/sgemm.json",
        "aa/round1/time/h200/sgemm.json",
        "aa/floors.csv",
        "tables/measurements.csv",
        "build/sm_90/sgemm/naive/record.json",
        "manifest.json",
    }
    assert size == sum((folder / k).stat().st_size for k in kept)


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
    manifest = read_json(folder / "manifest.json", "manifest")
    assert (manifest["campaign"], manifest["commit"]) == (CAMPAIGN["campaign"], CAMPAIGN["commit"])
    kept = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} - {"manifest.json"}
    assert set(manifest["files"]) == kept
    text = b"family,origin,x\nsgemm,live,1\n"
    assert manifest["files"]["tables/measurements.csv"] == hashlib.sha256(text).hexdigest()


def add_entry(folder: Path, name: str) -> None:
    """Adds a file outside of the folder to the manifest, with its true digest if there is one."""
    (folder.parent / "outside.json").write_text("{}")
    manifest = read_json(folder / "manifest.json")
    manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    write_json(folder / "manifest.json", manifest)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda f: (f / "aa/floors.csv").write_text("sgemm,live,9"),
            "aa/floors.csv: was changed after it was written",
        ),
        (lambda f: (f / "aa/floors.csv").unlink(), "aa/floors.csv: is missing"),
        (
            lambda f: (f / "time/h200/more.json").write_text("{}"),
            "time/h200/more.json: is not in manifest.json",
        ),
        (
            lambda f: (f / "time/h200/.more.json").write_text("{}"),
            "time/h200/.more.json: is not in manifest.json",
        ),
        (
            lambda f: (
                (f / "aa/floors.csv").rename(f.parent / "floors.csv")
                and (f / "aa/floors.csv").symlink_to(f.parent / "floors.csv")
            ),
            "aa/floors.csv: is a symbolic link",
        ),
        (lambda f: (f / "time/more").symlink_to("/etc"), "time/more: is a symbolic link"),
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
    settings = {**DEFAULTS, "mode": "recorded", "recorded": "mine"}
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
    for pattern in ("**/time/h200/*.json", "timeline/h200/*.json", "build/*/*/*/record.json"):
        for path in results.glob(pattern):
            path.unlink()  # stand-ins, not records
    folder, _ = record_campaign(Path(), "mine")
    manifest = folder / "manifest.json"
    before = manifest.read_bytes()
    manifest.unlink()
    settings = {**DEFAULTS, "mode": "recorded", "recorded": "mine"}
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
    link = folder / "aa" / "link.csv"
    link.symlink_to("floors.csv")
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


def test_a_long_table_is_kept_as_parquet_only(tmp_path: Path) -> None:
    tables = campaign(tmp_path) / "tables"
    for name, parquet in (("metrics", True), ("lines", False), ("gpus", True)):
        (tables / f"{name}.csv").write_text("a\n" * (1 << 20 if name != "gpus" else 1))
        (tables / f"{name}.parquet").write_text("PAR1") if parquet else None
    folder, _ = record_campaign(tmp_path, "h200")
    kept = {path.name for path in (folder / "tables").iterdir()}
    assert kept == {"measurements.csv", "metrics.parquet", "lines.csv", "gpus.csv", "gpus.parquet"}


def test_copies_the_ncu_report_of_a_requested_variant(tmp_path: Path) -> None:
    campaign(tmp_path, profiled=True)
    folder, _ = record_campaign(tmp_path, "h200", ["naive"])
    kept = [path.name for path in (folder / "profile" / "h200" / "sgemm").iterdir()]
    assert sorted(kept) == ["session-1.ncu-rep"]


def test_a_raw_report_is_kept_without_the_path_of_the_project(tmp_path: Path) -> None:
    """The line tables of its kernels hold that path, on the machine that measured."""
    results = campaign(tmp_path, profiled=True)
    report = results / "profile" / "h200" / "sgemm" / "session-1.ncu-rep"
    lines = b"\x01%b/kernels/sgemm\0naive.cu\0%b/kernels/include\0/kernels/transpose\xff"
    report.write_bytes(lines.replace(b"%b", b"/home/ada/gemm project"))
    extract = results / "extract" / "h200" / "sgemm.json"
    extract.parent.mkdir(parents=True)
    extract.write_text(json.dumps({"sha256": sha256(report.read_bytes()).hexdigest()}))
    folder, _ = record_campaign(tmp_path, "h200", ["naive"])
    kept = (folder / report.relative_to(results)).read_bytes()
    assert kept == lines.replace(b"%b", b"/" + b"_" * 21)
    digest = json.loads((folder / extract.relative_to(results)).read_text())["sha256"]
    assert digest == sha256(kept).hexdigest()
    assert b"ada" in report.read_bytes(), "the live report stays as it is"


def test_a_recorded_campaign_is_replaced_only_if_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = campaign(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["record", "h200"]) == 0
    (results / "time" / "h200" / "sgemm.json").unlink()
    folder = tmp_path / "results" / "recorded" / "h200"
    assert main(["record", "h200"]) == 1
    said = capsys.readouterr().err
    assert f"{folder}: exists; choose another name, or replace it with --replace" in said
    assert (folder / "time" / "h200" / "sgemm.json").is_file()
    assert main(["record", "h200", "--replace"]) == 0
    assert not (folder / "time").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["h200"], "nothing is left beside it"


class Stopped(BaseException):
    """The process ends here."""


def stop_at(step: int, patch: pytest.MonkeyPatch) -> None:
    """Lets only `step` changes of a folder happen; the next one raises Stopped."""
    left = iter(range(step))

    def counted(change: Callable[..., object]) -> Callable[..., object]:
        def stopping(*arguments: Any, **options: Any) -> object:
            if next(left, None) is None:
                raise Stopped
            return change(*arguments, **options)

        return stopping

    for name in ("mkdir", "rename", "replace", "rmdir", "unlink"):
        patch.setattr(os, name, counted(getattr(os, name)))


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
        (results / "tables" / "new.csv").write_text("new")
        try:
            with pytest.MonkeyPatch.context() as patch:
                stop_at(step, patch)
                record_campaign(place, "mine", replace=True)
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
        record_campaign(place, "mine", replace=True)
        assert (folder / "tables" / "new.csv").is_file()
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
