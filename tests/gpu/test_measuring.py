"""The timing core and the profilers on real kernels: times agree, samples are valid, and both regimes are apart."""

from pathlib import Path

import pytest
from gpu_jobs import build_timer, build_variant, gpu_job

from one_variant import check_variant, record_of, time_variant
from warplog.catalog.family import load_family
from warplog.extract.stage import extract_family
from warplog.machine import device, toolchain
from warplog.measure.job import Job, Settings
from warplog.measure.stages import capture, timing
from warplog.measure.stages.check import check_family
from warplog.records.config import CheckSettings, ProfileSettings, TimeSettings
from warplog.records.extract import Extract
from warplog.records.family_file import FamilyRecord
from warplog.records.profile import Profile
from warplog.records.time import Time
from warplog.tables.agreement import agreement

PROJECT = Path(__file__).parents[2]
FAMILY = PROJECT / "kernels" / "sgemm" / "family.yaml"

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the timing core and builds of warptile and the baseline."""
    place = tmp_path_factory.mktemp("measuring")
    build_timer(place)
    for name in ("warptile", "cublas"):
        build_variant(load_family(FAMILY), name, place / name)
    return place


def job(folder: Path, variant: str, stage: str, settings: Settings) -> Job[Settings]:
    family, record = load_family(FAMILY), folder / f"sgemm.{stage}.json"
    return gpu_job(family, variant, folder / variant, record, settings)


def test_the_time_at_rest_agrees_with_ncu_and_the_hot_time_with_nsys(folder: Path) -> None:
    cases, variants = ("1024", "2048"), ("warptile", "cublas")
    checks = [job(folder, v, "check", CheckSettings()) for v in variants]
    check_family(checks)
    times = [job(folder, v, "time", TimeSettings(hot_cases="all")) for v in variants]
    timing.time_family(times, checks[0].record, folder / "timer.so", cases)
    for name, tool in (("ncu", capture.capture_ncu), ("nsys", capture.capture_nsys)):
        found = toolchain.find(name)
        if found.path is None:
            pytest.skip(f"no {name}: {found.remedy}")
        captured = [job(folder, v, name, ProfileSettings()) for v in variants]
        tool(captured, checks[0].record, found, dict.fromkeys(variants, cases))
        for one in captured:
            record = record_of(one, Profile)
            if record.status == "denied":
                pytest.skip(record.reason)
            assert record.status == "ok", record.reason
    output, all_cases = folder / "sgemm.extract.json", dict.fromkeys(variants, cases)
    extract_family(folder / "sgemm.ncu.json", folder / "sgemm.nsys.json", all_cases, all_cases, output)
    for variant, timed in zip(variants, times, strict=True):
        rows = FamilyRecord.read(output, Extract).variants[variant].rows
        for case in record_of(timed, Time).cases:
            rest = [process.median_us for process in case.processes]
            hot = [process.hot_us for process in case.processes if process.hot_us is not None]
            own = [r for r in rows if r.case == case.case]
            ncu_us = sum(r.value for r in own if r.metric == "duration_us")
            nsys_us = sum(r.value for r in own if r.metric == "nsys_duration_us")
            times_us = (variant, case.case, rest, hot, ncu_us, nsys_us)
            assert agreement(rest, hot, ncu_us, nsys_us).code == "ok", times_us


def test_samples_are_blocked_and_their_clock_is_known(folder: Path) -> None:
    check = job(folder, "warptile", "check2", CheckSettings())
    check_variant(check)
    timed = time_variant(
        job(folder, "warptile", "time2", TimeSettings()), check.record, folder / "timer.so", ("256",)
    )
    cold = timed.cases[0].cold
    assert cold.not_blocked == 0
    assert 0 < cold.empty_us < 20
    assert len(cold.sm_mhz_samples) == cold.samples
    assert 0.5 * device.detect().max_sm_mhz < cold.sm_mhz < 1.05 * device.detect().max_sm_mhz
    assert 0.5 * device.detect().max_sm_mhz < cold.set_mhz < 1.05 * device.detect().max_sm_mhz


def test_each_process_places_the_arrays_elsewhere(folder: Path) -> None:
    check = job(folder, "warptile", "check3", CheckSettings())
    check_variant(check)
    timed = time_variant(
        job(folder, "warptile", "time3", TimeSettings()), check.record, folder / "timer.so", ("1024",)
    )
    addresses = [process.addresses for process in timed.cases[0].processes]
    assert len(set(addresses)) == len(addresses) >= TimeSettings().processes


def test_launches_at_rest_run_at_the_full_clock_and_sustained_ones_at_the_limit(folder: Path) -> None:
    """A large bf16 GEMM reaches the power limit of most boards."""
    family = load_family(PROJECT / "kernels" / "bf16_gemm" / "family.yaml")
    build_variant(family, family.baseline, folder / "bf16")
    place = folder / "bf16"
    check = gpu_job(family, family.baseline, place, folder / f"{family.name}.check.json", CheckSettings())
    settings = TimeSettings(hot_cases="all")
    timing = gpu_job(family, family.baseline, place, folder / f"{family.name}.time.json", settings)
    check_variant(check)
    (case,) = time_variant(timing, check.record, folder / "timer.so", ("4096",)).cases
    assert case.status == "ok", case.reason
    if case.sustained is None:
        assert case.no_sustained == "not_limited"
        pytest.skip("no limit acts on this board")
    # Not of the median process: a cool board runs above its maximum in some processes.
    clocks = [process.set_mhz for process in case.processes]
    assert min(clocks) >= 0.99 * device.detect().max_sm_mhz, clocks
    run = case.sustained
    assert run.sm_mhz < case.cold.set_mhz
    assert run.mean_us > case.hot.median_us
    if "sw_power_cap" in run.limits:
        assert run.power_w == pytest.approx(device.detect().power_limit_w, rel=0.03)
