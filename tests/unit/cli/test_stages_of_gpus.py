"""`warplog doctor` on GPUs that are not Hopper: what each stage can do, and what is said of limits and peaks."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from fake_driver import DESCRIBED as H200
from warplog.cli import doctor
from warplog.cli.checkup import kernels, stages, tools
from warplog.cli.checkup.finding import Finding
from warplog.machine import device

PROJECT = Path(__file__).parents[3]
TOOLS = ("nvcc", "host compiler", "driver", "ncu", "GPU counters", "nsys", "compute-sanitizer", "tracer")
ALL_WELL = [Finding(topic, "ok", "") for topic in TOOLS]


def pretended(slug, name, capability):
    """A GPU that gpus.yaml lists, as a driver would describe it."""
    entry = device.known_gpus(PROJECT)[slug]
    return replace(H200, slug=slug, name=name, compute_capability=capability, arch=entry.arch, sms=entry.sms)


RTX_4090 = pretended("rtx-4090", "NVIDIA GeForce RTX 4090", (8, 9))
RTX_5090 = pretended("rtx-5090", "NVIDIA GeForce RTX 5090", (12, 0))
A100 = pretended("a100-sxm4-80gb", "NVIDIA A100-SXM4-80GB", (8, 0))
L40S = pretended("l40s", "NVIDIA L40S", (8, 9))
B200 = pretended("b200", "NVIDIA B200", (10, 0))
OTHERS = {gpu.slug: gpu for gpu in (RTX_4090, RTX_5090, A100, L40S, B200)}


@pytest.fixture(scope="module")
def families():
    return kernels.load(PROJECT)


def examined(gpu, families, found=ALL_WELL):
    return {stage.name: stage for stage in stages.examine(gpu, families, found)}


@pytest.mark.parametrize(
    ("gpu", "unsupported", "without"),
    [
        (RTX_4090, {"sm_90a", "sm_90"}, ("oracle_sm90", "tma_swizzle")),
        (RTX_5090, {"sm_90a"}, ("oracle_sm90",)),
        (A100, {"sm_90a", "sm_90"}, ("oracle_sm90", "tma_swizzle")),
        (L40S, {"sm_90a", "sm_90"}, ("oracle_sm90", "tma_swizzle")),
        (B200, {"sm_90a"}, ("oracle_sm90",)),
        (H200, set(), ()),
    ],
    ids=lambda value: getattr(value, "slug", None),
)
def test_variants_that_a_gpu_cannot_run_are_counted_by_what_they_require(gpu, unsupported, without, families):
    stage = examined(gpu, families)["compile"]
    assert (set(stage.unsupported), stage.families) == (unsupported, without)
    variants = [v for family in families.values() for v in family.variants]
    refused = [v for v in variants if v.requires.why_not(gpu.compute_capability)]
    assert (stage.variants, sum(stage.unsupported.values())) == (len(variants), len(refused))


@pytest.mark.parametrize("gpu", OTHERS.values(), ids=OTHERS)
def test_a_gpu_on_which_warplog_has_not_run_is_named_as_such_in_every_stage(gpu, families):
    found = examined(gpu, families)
    assert {stage.state for stage in found.values()} == {"not_run"}
    lines = {finding.topic: finding.text for finding in stages.findings(found.values(), gpu)}
    for name in ("check", "time", "counters", "trace", "sanitize", "timeline", "tune"):
        assert f"warplog has not run on {gpu.arch}" in lines[f"stage {name}"]


def test_on_hopper_every_stage_works(families):
    found = examined(H200, families)
    assert {stage.state for stage in found.values()} == {"run"}
    assert found["counters"].metrics == ()
    assert found["tune"].searched > examined(B200, families)["tune"].searched == 0


@pytest.mark.parametrize(
    ("gpu", "metrics"),
    [
        (RTX_4090, {"stall_gmma_pct"}),
        (A100, {"stall_gmma_pct"}),
        (RTX_5090, {"stall_gmma_pct"}),
        (B200, {"stall_gmma_pct"}),
    ],
    ids=lambda value: getattr(value, "slug", None),
)
def test_metrics_of_hopper_without_a_counter_are_named(gpu, metrics, families):
    stage = examined(gpu, families)["counters"]
    assert metrics <= set(stage.metrics)
    assert not {"duration_us", "dram_bytes", "stall_wait_pct"} & set(stage.metrics)
    (line,) = (f for f in stages.findings([stage], gpu))
    assert all(name in line.text for name in stage.metrics)


def test_variants_whose_blocks_are_too_large_are_named(families):
    shared = {("vector_add", "scalar"): 99 * 1024 + 1025.0, ("vector_add", "float4"): 100 * 1024.0}
    shared |= {("bf16_gemm", "wgmma_tma"): 200e3}  # requires another architecture in any case
    by_gpu = {gpu.slug: stages.examine(gpu, families, ALL_WELL, shared) for gpu in (RTX_4090, A100)}
    large = {slug: {stage.name: stage.too_large for stage in answers} for slug, answers in by_gpu.items()}
    assert large["rtx-4090"] == dict.fromkeys(large["rtx-4090"], ()) | {"check": ("vector_add/scalar",)}
    assert set(large["a100-sxm4-80gb"].values()) == {()}
    (check,) = (f for f in stages.findings(by_gpu["rtx-4090"], RTX_4090) if f.topic == "stage check")
    assert "blocks of vector_add/scalar had more shared memory" in check.text


def test_recorded_blocks_are_those_of_the_projects_own_kernels(tmp_path):
    shared = stages.recorded_shared(PROJECT / "results/recorded/h200/tables")
    assert shared["sgemm", "warptile"] > 0
    assert ("sgemm", "cublas") not in shared
    assert stages.recorded_shared(tmp_path) == {}


@pytest.mark.parametrize(
    ("missing", "blocked"),
    [
        ("ncu", {"counters"}),
        ("GPU counters", {"counters"}),
        ("nsys", {"trace"}),
        ("compute-sanitizer", {"sanitize"}),
        ("tracer", {"accesses"}),
        ("nvcc", {"compile", "check", "time", "timeline", "accesses", "tune"}),
        ("driver", {"check", "time", "timeline", "accesses", "tune"}),
    ],
)
def test_what_is_missing_on_the_machine_blocks_its_stages_only(missing, blocked, families):
    found = [Finding(f.topic, "warn", "", "install it") if f.topic == missing else f for f in ALL_WELL]
    answers = examined(RTX_4090, families, found)
    assert {stage.name for stage in answers.values() if stage.state == "blocked"} == blocked
    lines = stages.findings((answers[name] for name in blocked), RTX_4090)
    assert all(f"not here: see {missing}" in line.text for line in lines)


@pytest.mark.parametrize(
    ("gpu", "limits", "peaks"),
    [
        (RTX_4090, "48 warps, 24 blocks", "FP32 82.6 TFLOP/s at 2520 MHz, BF16 165.2 TFLOP/s at 2520 MHz"),
        (RTX_5090, "a block gets up to 99 KiB; clusters of up to 8", "BF16 209.5 TFLOP/s at 2407 MHz"),
        (A100, "64 warps, 32 blocks", "BF16 312 TFLOP/s at 1410 MHz, device memory 2039 GB/s"),
        (
            L40S,
            "a block gets up to 99 KiB; no clusters",
            "FP32 91.6 TFLOP/s at 2520 MHz, BF16 362 TFLOP/s, device",
        ),
        (
            B200,
            "a block gets up to 227 KiB; clusters of up to 16",
            "BF16 2250 TFLOP/s, device memory 8000 GB/s",
        ),
    ],
    ids=lambda value: getattr(value, "slug", None),
)
def test_the_doctor_tells_limits_peaks_and_stages_of_a_gpu(gpu, limits, peaks, monkeypatch, families):
    monkeypatch.setattr(device, "detect", lambda: gpu)
    monkeypatch.setattr(device, "boards", lambda: [gpu])
    monkeypatch.setattr(tools, "try_nvcc", lambda *_: "")
    monkeypatch.setattr(tools, "libraries", lambda *_: [])
    found = {finding.topic: finding.text for finding in doctor.examine(PROJECT)}
    assert limits in found["SM limits"]
    assert peaks in found["peaks"]
    assert "not measured" in found["peaks"]
    for_hopper = sum(v.requires.arch == "sm_90a" for f in families.values() for v in f.variants)
    assert f"unsupported: {for_hopper} require sm_90a" in found["stage compile"]


def test_a_gpu_that_no_table_lists_has_its_stages_too(families):
    future = replace(H200, slug="rtx-9999", compute_capability=(13, 0), arch="sm_130")
    assert "unknown for sm_130" in stages.limits(future)[0].text
    assert {stage.state for stage in examined(future, families).values()} == {"not_run"}
    assert "computed from clocks" in stages.peaks(device.peaks(future, {})).text
