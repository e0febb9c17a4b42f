"""`warplog verify` names every record that cannot be relied on."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from small_campaign import FOLDER as RECORDED
from warplog.cli.main import main


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns results/ of a project with the records of a campaign."""
    monkeypatch.chdir(tmp_path)
    for stage in ("campaign", "build", "check", "time", "profile", "extract"):
        shutil.copytree(RECORDED / stage, Path("results") / stage)
    return Path("results")


def problems(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    status = main(["verify", str(folder)])
    output = capsys.readouterr()
    found = [line.removeprefix("error: ") for line in output.err.splitlines() if line.startswith("error: ")]
    assert status == (1 if found else 0)
    assert bool(output.out) == (not found)
    return found


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
    found = problems(campaign, capsys)
    assert found
    assert all(words in line or "naive" in line for line in found)
    assert any(words in line for line in found)


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
