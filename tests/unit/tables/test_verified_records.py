"""A record that was damaged or edited is an error of its rows; all other rows of the tables stay as they are."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shipped_families
from small_campaign import FOLDER as RECORDED
from warplog.core import paths
from warplog.machine import device
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.tables.rows import make_rows
from warplog.tables.verified_records import Source

FAMILY = shipped_families.FAMILIES["sgemm"]
VARIANTS = tuple(v for v in FAMILY.variants if v.name in ("naive", "warptile"))
Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns results/ of a project, with a copy of the records of a campaign, as a live one."""
    monkeypatch.chdir(tmp_path)
    for stage in ("campaign", "build", "check", "time", "profile", "extract"):
        shutil.copytree(RECORDED / stage, paths.RESULTS / stage)
    return paths.RESULTS


def tables(root: Path) -> Rows:
    source = Source(root, "live", door.read(root / "campaign" / "h200.json", Campaign))
    peaks = device.peaks(source.campaign.device, {})
    cases = {"sgemm": tuple(FAMILY.cases)}
    return make_rows(source, {"sgemm": FAMILY}, cases, {"sgemm": VARIANTS}, peaks)


def edit(root: Path, stage: str, change: Callable[[Any], object]) -> None:
    path = root / stage / "h200" / ("sgemm.ncu.json" if stage == "profile" else "sgemm.json")
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def rows_of(rows: Rows, variant: str, table: str = "measurements") -> list[dict[str, Any]]:
    return [row for row in rows[table] if row["variant"] == variant]


def timed(rows: Rows, variant: str) -> set[str]:
    return {row["case"] for row in rows_of(rows, variant) if row["status"] == "ok"}


def test_the_untouched_campaign_is_believed(campaign: Path) -> None:
    rows = tables(campaign)
    assert timed(rows, "naive") == set(FAMILY.cases) - {"8192", "16384"}, "these take it too long"
    assert timed(rows, "warptile") == set(FAMILY.cases) - {"16384"}


@pytest.mark.parametrize(
    ("stage", "change", "words"),
    [
        (
            "check",
            lambda v: v["warptile"].update(status="wrong", reason="off"),
            "its check has status wrong: off",
        ),
        ("check", lambda v: v.pop("warptile"), "its check has status missing"),
        (
            "check",
            lambda v: v["warptile"].update(library_sha256="0" * 64),
            "its check is of library 000000000000",
        ),
        ("time", lambda v: v["warptile"].update(library_sha256="0" * 64), "its result of 000000000000"),
        (
            "time",
            lambda v: v["warptile"].update(variant="naive"),
            "variant is 'naive', but its place is that of 'war",
        ),
        (
            "time",
            lambda v: v["warptile"].update(gpu="h100"),
            "gpu is 'h100', but its place is that of 'h200'",
        ),
        ("time", lambda v: v["warptile"]["provenance"].update(gpu_name="NVIDIA L4"), "measured on NVIDIA L4"),
        (
            "time",
            lambda v: v["warptile"]["cases"][0].pop("cold"),
            "cold: a case has it if and only if its status is ok",
        ),
    ],
)
def test_an_edited_record_is_an_error_of_its_variant_only(
    campaign: Path, stage: str, change: Callable[[Any], object], words: str
) -> None:
    before = tables(campaign)
    edit(campaign, stage, lambda data: change(data["variants"]))
    after = tables(campaign)
    lost = [row for row in rows_of(after, "warptile") if row["case"] in timed(before, "warptile")]
    assert {row["status"] for row in lost} == {"error"}
    assert all(words in row["reason"] for row in lost)
    assert not any(row.get("median_us") for row in rows_of(after, "warptile"))
    assert rows_of(after, "naive") == rows_of(before, "naive")
    assert rows_of(after, "warptile", "variants")[0]["status"] in ("error", "wrong", "missing")


def test_a_halved_median_is_an_error_of_its_case_only(campaign: Path) -> None:
    before = tables(campaign)

    def halve(data: Any) -> None:
        case = data["variants"]["warptile"]["cases"][0]
        case["cold"]["median_us"] /= 2

    edit(campaign, "time", halve)
    after = tables(campaign)
    bad = rows_of(after, "warptile")[0]
    assert bad["status"] == "error"
    assert "cold.median_us is" in bad["reason"]
    assert timed(after, "warptile") == timed(before, "warptile") - {bad["case"]}


def test_counters_of_another_library_have_no_value(campaign: Path) -> None:
    edit(campaign, "profile", lambda data: data["variants"]["warptile"].update(library_sha256="0" * 64))
    rows = [row for row in rows_of(tables(campaign), "warptile", "metrics") if row["tool"] == "ncu"]
    assert {(row["status"], row["value"]) for row in rows} == {("error", None)}
    assert all("its check is of library" in row["reason"] for row in rows)


def test_a_file_in_the_place_of_another_family_has_no_times(campaign: Path) -> None:
    edit(campaign, "time", lambda data: data.update(family="transpose"))
    assert {row["status"] for row in tables(campaign)["measurements"]} == {"error"}


def test_a_build_record_of_another_variant_is_an_error(campaign: Path) -> None:
    builds = campaign / "build" / "sm_90" / "sgemm"
    shutil.copy(builds / "naive" / "record.json", builds / "warptile" / "record.json")
    row = rows_of(tables(campaign), "warptile", "variants")[0]
    assert row["status"] == "error"
    assert "variant is 'naive', but its place is that of 'warptile'" in row["reason"]
