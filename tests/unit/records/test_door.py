"""Records are written completely or not at all; what does not fit its type is named, with the remedy."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import made_up_records
from warplog.core.errors import WarplogError
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.records.check import Check
from warplog.records.extract import Extract, HotLoop, LoopInstruction
from warplog.records.family_file import FamilyRecord
from warplog.records.time import Time


def test_a_failed_write_keeps_the_old_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "record.json"
    door.write(path, {"a": 1})

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WarplogError, match="No space left"):
        door.write(path, {"a": 2})
    assert door.read_json(path) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["record.json"]


@pytest.mark.parametrize("content", [b"", b'{"a": 1', b"[" * 100_000])
def test_a_damaged_record_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(content)
    with pytest.raises(WarplogError, match="is not a JSON record") as error:
        door.read_json(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_an_oversized_record_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.json"
    path.write_text('"' + "x" * 100 + '"')
    monkeypatch.setattr(door, "_MOST_BYTES", 50)
    with pytest.raises(WarplogError, match="over the limit"):
        door.read_json(path)


def test_what_is_not_a_number_never_reaches_a_record(tmp_path: Path) -> None:
    campaign = made_up_records.campaign(device=made_up_records.gpu(power_limit_w=float("nan")))
    with pytest.raises(ValueError, match="not JSON compliant"):
        door.write(tmp_path / "campaign.json", campaign)
    assert not list(tmp_path.iterdir())


def test_a_value_that_its_type_does_not_allow_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(WarplogError, match=r"gpu: 'H 200': expected up to 64 small letters, digits and -"):
        door.write(tmp_path / "campaign.json", structs.replace(made_up_records.campaign(), gpu="H 200"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("version", "words"), [(1, "migrate FOLDER"), (3, "by a later release")])
def test_a_record_of_another_release_is_refused_with_the_remedy(
    tmp_path: Path, version: int, words: str
) -> None:
    path = tmp_path / "campaign.json"
    door.write(path, {"schema": version, "stage": "campaign"})
    with pytest.raises(WarplogError, match=words):
        door.read(path, Campaign)


def _times() -> Time:
    cold = made_up_records.cold([1.0, 2.0, 3.0])
    return made_up_records.time(made_up_records.time_case("64", cold, [made_up_records.process(1, 2.0, 3)]))


@pytest.mark.parametrize(
    ("record", "change", "words"),
    [
        (_times(), lambda r: r["cases"].insert(0, "64"), "cases.0: expected a mapping of keys to values"),
        (_times(), lambda r: r["cases"][0].pop("processes"), "processes: a case has them if and only if"),
        (_times(), lambda r: r["cases"][0].update(trace={}), "cases.0: unknown key 'trace'"),
        (_times(), lambda r: r.update(check="wrong"), "cases: have times without a passed check"),
        (_times(), lambda r: r["cases"][0].update(no_hot=""), "no_hot: says why there is no hot time"),
        (_times(), lambda r: r["cases"][0].update(status="fine"), "cases.0.status: 'fine' is not one of"),
        (made_up_records.extract([]), lambda r: r.pop("kernels"), "required key 'kernels' is missing"),
        (made_up_records.campaign(), lambda r: r["device"].pop("sms"), "device: the required key 'sms'"),
        (made_up_records.campaign(), lambda r: r["device"].update(lane=1), "device: unknown key 'lane'"),
    ],
)
def test_a_record_that_its_readers_do_not_expect_is_refused(
    record: Time | Extract | Campaign, change: Callable[[Any], None], words: str
) -> None:
    data = json.loads(door.as_json(record))
    assert door.decode(data, type(record), "it") == record
    change(data)
    with pytest.raises(WarplogError) as error:
        door.decode(data, type(record), "it")
    assert words in str(error.value)


def test_one_bad_record_of_a_family_costs_one_variant(tmp_path: Path) -> None:
    path = tmp_path / "check" / "h200" / "scale.json"
    file = FamilyRecord(path, Check, {})
    for name in ("right", "other"):
        file.put(made_up_records.check(0.5, variant=name))
    file.write()
    assert FamilyRecord.read(path, Check).variants == file.variants
    path.write_text(path.read_text().replace('"variant": "other"', '"variant": "another"'))
    inspected = FamilyRecord.inspect(path, Check)
    assert list(inspected.variants) == ["right"]
    assert "variant is 'another', but its place is that of 'other'" in inspected.faults["other"]
    with pytest.raises(WarplogError, match="but its place is that of 'other'"):
        FamilyRecord.read(path, Check)


def test_an_extract_of_an_earlier_release_has_no_loops_and_one_of_this_one_keeps_them(tmp_path: Path) -> None:
    instruction = LoopInstruction(0x40, "FADD R1, R1, R2", 64, 10, "wait", 5, "k.cu", 7)
    facts = {
        "case": "64",
        "kernel": "k",
        "launch": 0,
        "iterates": True,
        "iterations": 64,
        "kernel_samples": 20,
    }
    extract = made_up_records.extract(loops=[HotLoop(**facts, instructions=(instruction,))])
    door.write(tmp_path / "r.json", extract)
    assert door.read(tmp_path / "r.json", Extract) == extract
    data = door.read_json(tmp_path / "r.json")
    assert data["loops"][0]["instructions"] == [[0x40, "FADD R1, R1, R2", 64, 10, "wait", 5, "k.cu", 7]]
    del data["loops"]
    assert door.decode(data, Extract, "r.json").loops is None
    data["loops"] = [{**facts, "instructions": [[0x40, "FADD R1, R1, R2", -1, 10, "wait", 5, "k.cu", 7]]}]
    with pytest.raises(WarplogError, match=r"r\.json: loops\.0\.instructions\.0\.2: -1"):
        door.decode(data, Extract, "r.json")
