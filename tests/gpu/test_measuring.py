"""The timing core and the profilers on a real kernel: times that agree, and a crash that stays where it happened."""

from pathlib import Path

import pytest

from warplog import build, capture, device, extract, measure, toolchain
from warplog.catalog import load_family
from warplog.jobs import Job
from warplog.plan import DEFAULTS
from warplog.records import read_json
from warplog.table_rows import agreement

PROJECT = Path(__file__).parents[2]
FAMILY = PROJECT / "kernels" / "sgemm" / "family.yaml"

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The baseline and warptile, built, and the timing core."""
    toolchain.ensure("cuda")
    toolchain.ensure("gpu")
    place = tmp_path_factory.mktemp("measuring")
    family = load_family(FAMILY)
    nvcc, cuobjdump = toolchain.find("nvcc"), toolchain.find("cuobjdump")
    arch = device.detect().arch
    build.build_timer(nvcc, arch, place / "timer.so")
    for name in ("warptile", "cublas"):
        build.build_variant(family, family.variant(name), arch, nvcc, cuobjdump, place / name)
    return place


def job(folder: Path, variant: str, stage: str, settings: dict[str, object]) -> Job:
    family = load_family(FAMILY)
    gpu = device.detect()
    assert gpu is not None
    return Job(
        family=family,
        variant=family.variant(variant),
        gpu=gpu,
        build_folder=folder / variant,
        record=folder / f"{variant}.{stage}.json",
        scratch=folder / f".{variant}.{stage}",
        settings=settings,
        tools={},
        commit="",
        content_sha256="",
    )


@pytest.mark.parametrize("variant", ["warptile", "cublas"])
def test_cold_agrees_with_ncu_and_hot_with_nsys(folder: Path, variant: str) -> None:
    cases = ("1024", "2048")
    check = job(folder, variant, "check", DEFAULTS["check"])
    assert measure.check_variant(check)["status"] == "ok"
    timed = measure.time_variant(
        job(folder, variant, "time", DEFAULTS["time"]), check.record, folder / "timer.so", cases
    )
    assert timed["status"] == "ok", timed["reason"]
    files = {tool: folder / f"{variant}.{tool}" for tool in ("ncu-rep", "nsys.sqlite")}
    settings = DEFAULTS["profile"]
    ncu = job(folder, variant, "ncu", settings)
    nsys = job(folder, variant, "nsys", settings)
    for captured, tool, name, report in (
        (ncu, capture.capture_ncu, "ncu", files["ncu-rep"]),
        (nsys, capture.capture_nsys, "nsys", files["nsys.sqlite"]),
    ):
        found = toolchain.find(name)
        if found.path is None:
            pytest.skip(f"no {name}: {found.remedy}")
        record = tool(captured, check.record, found, report, cases)
        if record["status"] == "denied":
            pytest.skip(record["reason"])
        assert record["status"] == "ok", record["reason"]
    output = folder / f"{variant}.extract.json"
    extract.extract_record(ncu.record, files["ncu-rep"], nsys.record, files["nsys.sqlite"], cases, output)
    rows = read_json(output, "record")["rows"]
    for case in timed["cases"]:
        cold, hot = case["cold"]["median_us"], case["hot"]["median_us"]
        ncu_us = sum(r["value"] for r in rows if (r["case"], r["metric"]) == (case["case"], "duration_us"))
        nsys_us = sum(
            r["value"] for r in rows if (r["case"], r["metric"]) == (case["case"], "nsys_duration_us")
        )
        assert agreement(cold, hot, ncu_us, nsys_us) == "ok", (case["case"], cold, hot, ncu_us, nsys_us)


def test_samples_are_blocked_and_their_clock_is_known(folder: Path) -> None:
    check = job(folder, "warptile", "check2", DEFAULTS["check"])
    measure.check_variant(check)
    timed = measure.time_variant(
        job(folder, "warptile", "time2", DEFAULTS["time"]), check.record, folder / "timer.so", ("256",)
    )
    cold = timed["cases"][0]["cold"]
    assert cold["not_blocked"] == 0
    assert 0 < cold["empty_us"] < 20
    assert len(cold["sm_mhz_samples"]) == cold["samples"]
    assert 0.5 * device.detect().max_sm_mhz < cold["sm_mhz"] < 1.05 * device.detect().max_sm_mhz
