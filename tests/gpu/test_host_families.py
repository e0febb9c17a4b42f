"""Families that are more than one kernel, on a real GPU: host memory, overlapped copies, long runs, clusters."""

from pathlib import Path

import pytest
from gpu_jobs import build_timer, build_variant, gpu_job
from msgspec import structs

import shipped_families
from one_variant import check_variant, record_of, time_variant
from warplog.catalog.family import load_family
from warplog.extract.stage import extract_family
from warplog.machine import device, toolchain
from warplog.measure.job import Job, Settings
from warplog.measure.stages import capture
from warplog.records.check import Check
from warplog.records.config import CheckSettings, ProfileSettings, TimeSettings
from warplog.records.extract import Extract
from warplog.records.family_file import FamilyRecord
from warplog.records.profile import Profile
from warplog.records.remarks import HostTime
from warplog.records.time import TimeCase
from warplog.tables.rows import power_trace_rows, sustained_columns

KERNELS = Path(__file__).parents[2] / "kernels"
FAMILIES = ("transfer", "overlap", "power", "quantization", "dsmem")
VARIANTS = [(f, v.name) for f in FAMILIES for v in shipped_families.FAMILIES[f].variants]
QUICK = TimeSettings(
    processes=2, most_processes=1, max_samples=12, max_seconds=0.4, hot_seconds=0.05, hot_cases="all"
)

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the timing core."""
    place = tmp_path_factory.mktemp("host_families")
    build_timer(place)
    return place


def job(folder: Path, family: str, variant: str, stage: str, settings: Settings) -> Job[Settings]:
    """Returns a job of the variant, which is built if necessary."""
    contract, place = load_family(KERNELS / family / "family.yaml"), folder / family / variant
    if not (place / "record.json").is_file():
        build_variant(contract, variant, place)
    return gpu_job(contract, variant, place, folder / f"{family}.{variant}.{stage}.json", settings)


def checked(folder: Path, family: str, variant: str) -> Path:
    """Returns the path of the record of a passed check."""
    made = job(folder, family, variant, "check", CheckSettings(rounds=1))
    record = record_of(made, Check) if made.record.is_file() else check_variant(made)
    if record.status in ("unsupported", "skipped"):
        pytest.skip(record.reason)
    assert (record.status, record.reason) == ("ok", "")
    return made.record


def timed(folder: Path, family: str, variant: str, case: str) -> TimeCase:
    check = checked(folder, family, variant)
    made = job(folder, family, variant, "time", QUICK)
    record = time_variant(made, check, folder / "timer.so", (case,))
    assert (record.status, record.reason) == ("ok", "")
    return record.cases[0]


@pytest.mark.parametrize(("family", "variant"), VARIANTS)
def test_every_variant_is_correct(folder: Path, family: str, variant: str) -> None:
    checked(folder, family, variant)


def test_pinned_copies_are_faster_than_pageable_ones_and_have_a_remark_about_host_time(folder: Path) -> None:
    pinned, pageable = (timed(folder, "transfer", f"to_device_{m}", "16Mi") for m in ("pinned", "pageable"))
    assert pinned.cold.median_us < pageable.cold.median_us
    assert HostTime() in pinned.remarks
    assert pinned.cold.not_blocked == pinned.cold.samples
    assert pinned.seconds < 30, "a copy of pageable memory must not wait for a blocked stream"
    assert pinned.hot.median_us == pytest.approx(pinned.cold.median_us, rel=0.3)


def test_launchers_with_several_streams_are_timed_behind_the_block_and_in_a_graph(folder: Path) -> None:
    one, three = (timed(folder, "overlap", v, "64Mi") for v in ("sequential", "three_streams"))
    assert one.cold.not_blocked == three.cold.not_blocked == 0
    assert three.cold.median_us < 0.8 * one.cold.median_us
    assert three.hot.median_us < 0.8 * one.hot.median_us


def test_nsys_shows_how_much_of_the_copies_is_hidden(folder: Path) -> None:
    nsys = toolchain.find("nsys")
    if nsys.path is None:
        pytest.skip(f"no nsys: {nsys.remedy}")
    hidden = {}
    for variant in ("sequential", "three_streams"):
        check = checked(folder, "overlap", variant)
        made = job(folder, "overlap", variant, "nsys", ProfileSettings())
        capture.capture_nsys([made], check, nsys, {variant: ("64Mi",)})
        traced = FamilyRecord.read(made.record, Profile).variants[variant]
        assert traced.status == "ok", traced.reason
        lost = FamilyRecord(made.record.with_name(f"overlap.{variant}.ncu.json"), Profile, {})
        lost.put(structs.replace(traced, tool="ncu", status="skipped", reason="n/a", report="", cases=()))
        lost.write()
        cases, output = {variant: ("64Mi",)}, folder / f"overlap.{variant}.extract.json"
        extract_family(lost.path, made.record, cases, cases, output)
        rows = FamilyRecord.read(output, Extract).variants[variant].rows
        found = {row.metric: row.value for row in rows if row.tool == "nsys" and row.kernel == ""}
        hidden[variant] = found["copy_hidden_pct"]
        assert found["wall_us"] >= max(found[n] for n in ("kernel_us", "to_device_us", "to_host_us"))
    assert hidden["sequential"] < 1
    assert hidden["three_streams"] > 50


def test_a_long_sustained_run_keeps_clock_power_and_energy(folder: Path) -> None:
    found = timed(folder, "power", "tensor_cores", "8192-random")
    trace = found.sustained.trace
    assert trace.time_s[-1] - trace.time_s[0] > 0.9
    assert len(trace.time_s) > 30
    flops = 2 * 8192.0**3
    row = sustained_columns(found, flops)
    assert row["sustained_power_w"] > 0
    assert 0.01 < row["pj_per_flop"] < 1000
    rates = [rate["gflops"] for rate in power_trace_rows(found, flops)]
    assert min(rates) > 0.5 * row["sustained_gflops"]
    assert max(rates) < 2 * row["sustained_gflops"]


def test_one_block_more_than_a_wave_takes_another_wave(folder: Path) -> None:
    if device.detect().sms != 132:
        pytest.skip("the cases of the family are chosen for 132 SMs")
    full, more = (timed(folder, "quantization", "tile_128", case) for case in ("16896", "16897"))
    assert more.cold.median_us > 1.6 * full.cold.median_us
