"""GPU stages replayed from a recorded campaign: records of this campaign's GPU and builds, named as what they are."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from warplog.core.defaults import DEFAULTS
from warplog.core.errors import WarplogError
from warplog.core.records import FamilyRecord, read_json, write_json
from warplog.measure import replay
from warplog.plan.script import replayed

PROJECT = Path(__file__).parents[3]
ROOT = PROJECT / "results" / "recorded" / DEFAULTS["recorded"]
BUILDS = ROOT / "build" / "sm_90" / "vector_add"


def test_nothing_is_replayed_unless_the_variable_names_a_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(replay.VARIABLE, raising=False)
    assert replay.wanted(PROJECT) is None
    assert not replayed(SimpleNamespace())
    monkeypatch.setenv(replay.VARIABLE, "nowhere")
    with pytest.raises(WarplogError, match="WARPLOG_REPLAY=nowhere: no recorded campaign"):
        replay.wanted(PROJECT)


def test_a_replayed_record_is_of_this_campaigns_gpu_and_builds_and_keeps_its_numbers(tmp_path: Path) -> None:
    build = tmp_path / "record.json"
    write_json(build, {**read_json(BUILDS / "float4" / "record.json"), "library_sha256": "a" * 64}, "record")
    record = tmp_path / "time" / "h100" / "vector_add.json"
    replay.replay_family(ROOT, "h100", record, ["float4", "unknown"], [build, build])
    (made,) = FamilyRecord.read(record).variants.values()
    recorded = FamilyRecord.read(ROOT / "time" / "h200" / "vector_add.json").variants["float4"]
    assert (made["gpu"], made["library_sha256"]) == ("h100", "a" * 64)
    assert (made["cases"], made["provenance"]) == (recorded["cases"], recorded["provenance"])


def test_a_replayed_campaign_says_so_in_its_name(tmp_path: Path) -> None:
    replay.replay_campaign(ROOT, "h100", tmp_path / "h100.json")
    assert read_json(tmp_path / "h100.json", "record")["campaign"] == "replayed-h100"


def test_a_replayed_campaign_is_another_one_than_the_recorded(tmp_path: Path) -> None:
    recorded = read_json(ROOT / "campaign" / "h200.json", "record")
    (tmp_path / "campaign").mkdir()
    write_json(tmp_path / "campaign" / "h200.json", {**recorded, "id": "0" * 16}, "record")
    replay.replay_campaign(tmp_path, "h100", tmp_path / "h100.json")
    assert "id" not in read_json(tmp_path / "h100.json", "record")


def test_a_family_that_was_not_recorded_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WarplogError, match=r"no records of new.json, which WARPLOG_REPLAY asks for"):
        replay.replay_family(ROOT, "h100", tmp_path / "time" / "h100" / "new.json", ["a"], [])
