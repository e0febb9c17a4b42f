"""Timelines captured on this GPU show what the pages say about the marked kernels."""

from dataclasses import replace
from pathlib import Path

import pytest
from gpu_jobs import build_timer, build_variant, gpu_job, this_gpu
from msgspec import structs

from shipped_families import FAMILIES
from warplog.machine import toolchain
from warplog.measure.building import build
from warplog.measure.stages import timeline
from warplog.measure.stages.check import check_family
from warplog.records.check import Check
from warplog.records.config import CheckSettings, TimelineSettings
from warplog.records.family_file import FamilyRecord
from warplog.records.requested.timeline import Timeline
from warplog.tables import timelines

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]
MARKED = [(family.name, name) for family in FAMILIES.values() for name in family.timeline]
SETTINGS = TimelineSettings()


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory):
    """Returns a function that captures a variant once and returns its record and its row of `launches`."""
    folder, known = tmp_path_factory.mktemp("timelines"), {}
    build_timer(folder)

    def capture(family: str, name: str) -> tuple[Timeline, dict]:
        if (family, name) not in known:
            known[family, name] = _capture(folder / name, folder / "timer.so", family, name)
        return known[family, name]

    return capture


def _capture(folder: Path, timer: Path, family_name: str, name: str) -> tuple[Timeline, dict]:
    family = FAMILIES[family_name]
    variant = family.variant(name)
    if reason := variant.requires.why_not(this_gpu().compute_capability):
        pytest.skip(reason)
    build_variant(family, name, folder / "plain")
    marked = structs.replace(variant, parameters={**variant.parameters, "WARPLOG_TIMELINE": 1})
    tools = toolchain.find("nvcc"), toolchain.find("cuobjdump")
    record = build.build_variant(family, marked, this_gpu().arch, *tools, folder / "marked")
    assert record.status == "ok", record.reason
    results = folder / "results"
    check = results / "check" / this_gpu().slug / f"{family_name}.json"
    job = gpu_job(family, name, folder / "plain", check, CheckSettings(rounds=1, timeout_s=120.0))
    check_family([job])
    assert FamilyRecord.read(check, Check).variants[name].status == "ok"
    job = replace(job, record=results / "timeline" / this_gpu().slug / check.name, settings=SETTINGS)
    timeline.capture_timelines([job], check, timer, [folder / "marked" / "record.json"])
    found = FamilyRecord.read(job.record, Timeline).variants[name]
    (row,) = (row for table, row in timelines.rows(found, variant, "live") if table == "launches")
    print(name, {key: value for key, value in row.items() if key not in ("source_sha256", "reason")})
    return found, row


@pytest.mark.parametrize(("family", "name"), MARKED)
def test_a_launch_is_captured_whole_and_with_its_overhead(captured, family, name):
    record, row = captured(family, name)
    assert (record.status, record.reason) == ("ok", "")
    assert (row["lost_events"], row["lost_warps"]) == (0, 0)
    assert row["sms"] > 0.9 * this_gpu().sms
    assert 300 < row["sm_mhz"] < 3000
    assert row["span_us"] == pytest.approx(row["plain_us"], rel=0.5)


@pytest.mark.parametrize("name", ["wgmma_pipelined", "wgmma_cluster", "wgmma_tma_store", "wgmma_stream_k"])
def test_the_producer_is_ahead_of_the_consumers(captured, name):
    _, row = captured("bf16_gemm", name)
    assert row["lead_steps"] >= 1
    assert row["producer_wait_pct"] > 50
    assert row["compute_pct"] > row["wait_pct"]


@pytest.mark.parametrize("name", ["wgmma_pipelined", "wgmma_cluster", "wgmma_tma_store"])
def test_tensor_cores_are_idle_at_tile_ends(captured, name):
    _, row = captured("bf16_gemm", name)
    assert row["bubbles"] > 0
    assert row["bubble_us"] > 0


@pytest.mark.parametrize(("family", "name"), [("sgemm", "stream_k"), ("bf16_gemm", "wgmma_stream_k")])
def test_partial_sums_are_handed_over_where_tiles_are_cut(captured, family, name):
    assert captured(family, name)[1]["handover_pct"] > 0


def test_blocks_of_the_one_pass_scan_wait_for_the_tiles_before_them(captured):
    _, row = captured("scan", "decoupled_lookback")
    assert row["lookback_us"] > 0
    assert row["lookback_pct"] > 0
