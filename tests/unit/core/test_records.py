"""Records are written completely or not at all; configuration errors name the key and the remedy."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from host_family import make_job
from one_variant import check_variant, record_of
from small_campaign import FOLDER as RECORDED
from warplog.core import records, schema
from warplog.core.errors import WarplogError


def test_failed_write_keeps_the_old_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "record.json"
    records.write_json(path, {"a": 1})

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WarplogError, match="No space left"):
        records.write_json(path, {"a": 2})
    assert records.read_json(path) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["record.json"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a JSON record"),
        (b'{"a": 1', "is not a JSON record"),
        (b"[" * 100_000, "is not a JSON record"),
    ],
)
def test_damaged_record_is_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(content)
    with pytest.raises(WarplogError, match=words) as error:
        records.read_json(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_oversized_record_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.json"
    path.write_text('"' + "x" * 100 + '"')
    monkeypatch.setattr(records, "_MOST_BYTES", 50)
    with pytest.raises(WarplogError, match="over the limit"):
        records.read_json(path)


def test_nan_never_reaches_a_record(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        records.write_json(tmp_path / "r.json", {"a": float("nan")})


@pytest.mark.parametrize("stage", ["build", "check"])
def test_unknown_key_in_a_record_is_refused(tmp_path: Path, stage: str) -> None:
    job = make_job(tmp_path, "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];")
    check_variant(job)
    record = {"build": job.build, "check": record_of(job)}[stage]
    schema.check(record, "record", "r")
    with pytest.raises(WarplogError, match="surprise"):
        schema.check(record | {"surprise": 1}, "record", "r")
    with pytest.raises(WarplogError, match="status"):
        schema.check(record | {"status": "fine"}, "record", "r")


@pytest.mark.parametrize(
    ("stage", "change", "words"),
    [
        (
            "time",
            lambda r: r["cases"].insert(0, "64"),
            "cases.0: expected a mapping of keys to values, got '64'",
        ),
        (
            "time",
            lambda r: r["cases"][0].pop("processes"),
            "cases.0: the required key 'processes' is missing",
        ),
        ("time", lambda r: r["cases"][0].update(trace={}), "cases.0: unknown key 'trace'"),
        ("extract", lambda r: r.pop("kernels"), "the required key 'kernels' is missing"),
        ("campaign", lambda r: r["device"].pop("sms"), "device: the required key 'sms' is missing"),
        ("campaign", lambda r: r["device"].update(lanes=1), "device: unknown key 'lanes'"),
        (
            "extract",
            lambda r: r["timeline"][0].update(duration_us=-1.0),
            "timeline.0.duration_us: -1.0",
        ),
    ],
)
def test_a_record_that_its_readers_do_not_expect_is_refused(stage: str, change: Any, words: str) -> None:
    if stage == "campaign":
        record = records.read_json(RECORDED / "campaign" / "h200.json", "record")
    else:
        record = records.FamilyRecord.read(RECORDED / stage / "h200" / "sgemm.json").variants["naive"]
    change(record)
    with pytest.raises(WarplogError) as error:
        schema.check(record, "record", "it")
    assert words in str(error.value)


def test_a_key_that_looks_like_a_number_is_named_like_others() -> None:
    with pytest.raises(WarplogError, match=r"check_cases\.1024\.n: "):
        schema.check({"check_cases": {"1024": {"n": "x"}}}, "family", "family.yaml")
