"""`warplog verify` names every record that cannot be relied on."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import recorded_campaigns
from small_campaign import FOLDER as RECORDED
from warplog.cli.main import main
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.records.verification import manifest, recorded

STAGES = ("campaign", "build", "check", "time", "profile", "extract")


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns results/ of a project with the records of a campaign."""
    monkeypatch.chdir(tmp_path)
    for stage in STAGES:
        shutil.copytree(RECORDED / stage, Path("results") / stage)
    return Path("results")


def problems(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    status = main(["verify", str(folder)])
    output = capsys.readouterr()
    errors = [line.removeprefix("error: ") for line in output.err.splitlines() if line.startswith("error: ")]
    assert status == (1 if errors else 0)
    assert bool(output.out) == (not errors)
    return errors


def edit(path: Path, change: Callable[[Any], object]) -> None:
    """Changes a JSON file and keeps its time."""
    before = path.stat()
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_an_untouched_campaign_has_no_problems(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert problems(campaign, capsys) == []


def test_a_folder_without_a_campaign_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tmp_path)]) == 1
    assert "holds no campaign" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        (
            "time/h200/sgemm.json",
            lambda d: d["variants"]["naive"]["cases"][0]["cold"].update(median_us=1.0),
            "cold.median_us is 1, its processes give",
        ),
        (
            "check/h200/sgemm.json",
            lambda d: d["variants"]["naive"].update(status="wrong", reason="off"),
            "naive: its check has status wrong: off",
        ),
        (
            "check/h200/sgemm.json",
            lambda d: d["variants"].pop("naive"),
            "naive: its check has status missing",
        ),
        (
            "extract/h200/sgemm.json",
            lambda d: d.update(gpu="l4"),
            "gpu is 'l4', but its place is that of 'h200'",
        ),
        ("campaign/h200.json", lambda d: d.update(gpu="l4"), "gpu is 'l4', but its place is that of 'h200'"),
        (
            "build/sm_90/sgemm/naive/record.json",
            lambda d: d.update(variant="a"),
            "variant is 'a', but its place is",
        ),
        (
            "build/sm_90/sgemm/naive/record.json",
            lambda d: d.update(seconds="1"),
            "seconds: expected a number",
        ),
    ],
)
def test_an_edited_record_is_named(
    campaign: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    change: Callable[[Any], object],
    words: str,
) -> None:
    edit(campaign / name, change)
    errors = problems(campaign, capsys)
    assert errors
    assert all(words in line or "naive" in line for line in errors)
    assert any(words in line for line in errors)


def test_a_round_of_the_same_code_is_verified_without_checks_of_its_own(
    campaign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = campaign / "aa" / "round1" / "time" / "h200" / "sgemm.json"
    path.parent.mkdir(parents=True)
    shutil.copy(campaign / "time" / "h200" / "sgemm.json", path)
    assert problems(campaign, capsys) == []
    edit(path, lambda d: d["variants"]["naive"]["cases"][0]["cold"].update(q1_us=1.0))
    (line,) = problems(campaign, capsys)
    assert line.startswith(f"{path}: naive: case")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of the same campaign as `warplog record` keeps it, which no test changes."""
    place = tmp_path_factory.mktemp("kept")
    for stage in STAGES:
        shutil.copytree(RECORDED / stage, place / "results" / stage)
    about = door.read(RECORDED / "campaign" / "h200.json", Campaign)
    recorded.write(place / "small", recorded.kept(place / "results", ()), about)
    return place / "small"


@pytest.fixture
def packed(campaign: Path, kept: Path) -> Path:
    """Returns a copy of it in a project that has the campaign, too."""
    return Path(shutil.copytree(kept, campaign / "recorded" / "small"))


def test_a_packed_campaign_is_consistent_and_says_when_and_where_each_stage_was_measured(
    packed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "small"]) == 0
    first, about, *stages = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"{packed}: \d\d consistent records, 6 files as in manifest.json", first)
    assert re.fullmatch(r"h200-\S+: NVIDIA H200, commit [0-9a-f]{12}, evaluated at [0-9a-f]{12}", about)
    assert [line.split()[0] for line in stages] == ["check", "time", "ncu", "nsys"]
    assert all(re.fullmatch(r"  \w+ +20\d\d-\d\d-\d\d  [0-9a-f]{7}  1 board", line) for line in stages)


def test_several_visits_and_boards_are_named_per_stage(
    packed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def visited(files: dict[str, Any]) -> None:
        for variant in files["time/h200/transpose.json"]["variants"].values():
            variant["provenance"] |= {
                "gpu_uuid": "GPU-other",
                "commit": "fedcba9876543210",
                "finished": "2027-01-02T03:04:05Z",
            }

    recorded_campaigns.repack(packed / "records" / "time.tar.xz", visited)
    about = door.read(packed / "campaign" / "h200.json", Campaign)
    manifest.write(packed, about.campaign, about.commit)
    assert main(["verify", "small"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^  time .* 2027-01-02  [0-9a-f]{7} fedcba9  2 boards$", said, re.MULTILINE)
    assert re.search(r"^  check .*  1 board$", said, re.MULTILINE)


def test_a_flipped_bit_in_an_archive_is_one_line(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = packed / "records" / "time.tar.xz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    (line,) = problems(packed, capsys)
    assert line.startswith(f"{path}: was changed after it was written; restore it (git checkout")


def test_a_packed_record_that_contradicts_another_is_named_by_its_path(
    packed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(files: dict[str, Any]) -> None:
        files["check/h200/sgemm.json"]["variants"]["naive"] |= {"status": "wrong", "reason": "off"}

    recorded_campaigns.repack(packed / "records" / "check.tar.xz", wrong)
    manifest.write(packed, "small", "")
    errors = problems(packed, capsys)
    assert any(
        line.startswith(f"{packed}/time/h200/sgemm.json: naive: its check has status") for line in errors
    )


def test_a_campaign_that_was_evaluated_anew_names_both_commits(
    packed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = packed / "campaign" / "h200.json"
    door.write(path, structs.replace(door.read(path, Campaign), evaluated_commit="f" * 40))
    manifest.write(packed, "small", "")
    assert main(["verify", "small"]) == 0
    assert re.search(
        rf"commit [0-9a-f]{{12}}, evaluated at {'f' * 12}$", capsys.readouterr().out, re.MULTILINE
    )
