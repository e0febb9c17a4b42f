"""Variants that are not captured, and the reason in their records; no profiler is needed."""

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from host_family import make_job
from one_variant import check_variant, record_of
from warplog.catalog.contract import Measuring
from warplog.machine.toolchain import Tool
from warplog.measure import capture
from warplog.records.config import ProfileSettings
from warplog.records.profile import Profile

RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
SETTINGS = ProfileSettings(metrics="lean", launches=3, timeout_s=20.0)


@pytest.mark.parametrize(
    ("profilers", "status", "words"),
    [
        (["nsys"], "skipped", "n/a: ncu cannot observe what this family measures"),
        (["ncu", "nsys"], "missing", "not found"),
    ],
)
def test_ncu_is_skipped_if_the_family_excludes_it_and_missing_if_not_installed(
    tmp_path: Path, profilers: list[str], status: str, words: str
) -> None:
    checked = make_job(tmp_path, RIGHT)
    check_variant(checked)
    family = structs.replace(checked.family, measuring=Measuring(profilers=profilers))
    job = replace(checked, family=family, record=tmp_path / "scale.ncu.json", settings=SETTINGS)
    missing = Tool("ncu", None, None, "install it")
    capture.capture_ncu([job], checked.record, missing, {"right": ("64",)})
    record = record_of(job, Profile)
    assert (record.status, record.cases[0].status) == (status, status)
    assert words in record.reason
    assert record.report == ""
