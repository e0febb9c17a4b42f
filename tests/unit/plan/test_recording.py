"""`warplog record` copies a live campaign without its large files, and refuses one made from recorded tables."""

import hashlib
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from made_up_device import H200
from one_variant import write_record
from warplog.cli.main import main
from warplog.cli.recording import record_campaign
from warplog.core.defaults import DEFAULTS
from warplog.core.errors import WarplogError
from warplog.core.records import read_json, write_json
from warplog.judge.sources import recorded_campaign

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


def test_one_of_several_campaigns_of_a_run_is_named_by_its_gpu(tmp_path: Path) -> None:
    results = campaign(tmp_path)
    whole = {path.relative_to(results) for path in results.rglob("*") if path.is_file()}
    for path in list(whole):
        (results / "h200" / path).parent.mkdir(parents=True, exist_ok=True)
        (results / path).rename(results / "h200" / path)
    with pytest.raises(WarplogError, match=r"0 live campaigns.*name the GPU \(--gpu\)"):
        record_campaign(tmp_path, "mine")
    folder, _ = record_campaign(tmp_path, "mine", gpu="h200")
    assert (folder / "campaign" / "h200.json").is_file()
    assert (folder / "time" / "h200" / "sgemm.json").is_file()


def test_the_manifest_names_the_commit_and_the_digest_of_every_other_file(tmp_path: Path) -> None:
    campaign(tmp_path)
    folder, _ = record_campaign(tmp_path, "h200")
    manifest = read_json(folder / "manifest.json", "manifest")
    assert (manifest["campaign"], manifest["commit"]) == (CAMPAIGN["campaign"], CAMPAIGN["commit"])
    kept = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} - {"manifest.json"}
    assert set(manifest["files"]) == kept
    text = b"family,origin,x\nsgemm,live,1\n"
    assert manifest["files"]["tables/measurements.csv"] == hashlib.sha256(text).hexdigest()


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


def test_a_campaign_without_a_manifest_can_be_used_and_gets_one_on_demand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign(tmp_path)
    for pattern in ("**/time/h200/*.json", "timeline/h200/*.json", "build/*/*/*/record.json"):
        for path in (tmp_path / "results").glob(pattern):
            path.unlink()  # stand-ins, not records
    folder, _ = record_campaign(tmp_path, "mine")
    manifest = folder / "manifest.json"
    before = manifest.read_bytes()
    manifest.unlink()
    assert recorded_campaign({**DEFAULTS, "mode": "recorded", "recorded": "mine"}, tmp_path)[0] == folder
    assert main(["verify", str(folder), "--write-manifest"]) == 0
    assert manifest.read_bytes() == before
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


def test_recording_again_replaces_the_previous_copy(tmp_path: Path) -> None:
    results = campaign(tmp_path)
    record_campaign(tmp_path, "h200")
    (results / "time" / "h200" / "sgemm.json").unlink()
    folder, _ = record_campaign(tmp_path, "h200")
    assert not (folder / "time").exists()


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
