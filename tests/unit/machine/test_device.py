"""Properties, peak rates and processes of a GPU, with a fake driver library instead of a GPU."""

import math
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

import fake_driver
from fake_driver import DESCRIBED, H200, Driver
from warplog.machine.clocks import Sampler, clock_state
from warplog.machine.device import detect, known_gpus, peaks, processes, settings, slug_of, why_not
from warplog.machine.gpus import KnownGpu

PROJECT = Path(__file__).parents[3]


@pytest.fixture
def install(monkeypatch):
    """Replaces the driver by a fake one with the given boards."""
    return partial(fake_driver.install, monkeypatch)


def test_a_gpu_is_described_and_the_driver_let_go(install):
    driver = install(H200)
    gpu = detect()
    assert gpu == DESCRIBED
    assert why_not() == ""
    assert gpu.environment["CUDA_VISIBLE_DEVICES"] == "GPU-aaaa"
    assert driver.users == 0


def test_a_driver_that_tells_next_to_nothing_gives_zeros_and_no_error(install):
    sparse = {"GetUUID": "GPU-x", "GetName": b"Tesla T4", "GetEnforcedPowerLimit": 0xFFFFFFFF}
    sparse |= {"GetTotalEnergyConsumption": 0xFFFFFFFFFFFFFFFF}
    install(sparse | {"GetGraphicsRunningProcesses": Driver.NVMLLibraryMismatchError("old")})
    gpu = detect()
    assert (gpu.name, gpu.slug, gpu.sms, gpu.memory_bytes, gpu.power_limit_w) == (
        "Tesla T4",
        "t4",
        0,
        0,
        None,
    )
    state = clock_state()
    assert (state.sm_mhz, state.power_w, state.power_kind, state.throttle_reasons) == (None, None, "", ())
    assert (state.energy_j, state.reports_reasons) == (None, False)
    with Sampler() as sampler:
        board = sampler.result()
        means = sampler.between(0.0, math.inf)
    assert (board.sm_mhz, board.power_w, board.temperature_c, board.power_kind) == (None, None, None, "")
    assert (means.sm_mhz, means.power_w, means.limits) == (None, None, ())
    assert board.state_samples > 0
    assert processes() == []
    assert settings() == {}


def test_no_driver_is_told_and_not_raised(install):
    install()
    assert detect() is None
    assert "no NVIDIA driver" in why_not()
    assert clock_state() is None
    assert processes() == []
    with Sampler() as sampler:
        pass
    assert sampler.result().sm_mhz is None


@pytest.mark.parametrize(
    ("setting", "uuid"),
    [
        ("1", "GPU-bbbb"),
        ("1,0", "GPU-bbbb"),
        ("GPU-bb", "GPU-bbbb"),
        ("GPU-aaaa", "GPU-aaaa"),
        (" 0", "GPU-aaaa"),
    ],
)
def test_the_gpu_is_the_first_that_cuda_visible_devices_lets_through(install, monkeypatch, setting, uuid):
    install(H200, H200 | {"GetUUID": "GPU-bbbb"})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
    assert detect().uuid == uuid


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("", "hides all GPUs"),
        ("-1", "hides all GPUs"),
        ("5", "no GPU '5'"),
        ("GPU-zz", "no GPU 'GPU-zz'"),
        ("²", "no GPU"),
    ],
)
def test_a_hidden_or_unknown_gpu_is_told(install, monkeypatch, setting, said):
    install(H200)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
    assert detect() is None
    assert said in why_not()


def mig():
    board = {**H200, "GetName": "NVIDIA A100-SXM4-40GB", "GetMigMode": [1, 1], "GetMaxMigDeviceCount": 7}
    board["GetCudaComputeCapability"] = (8, 0)
    part = {
        "GetName": "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "GetUUID": "MIG-1234",
        "GetMemoryInfo": SimpleNamespace(total=5 << 30),
        "GetAttributes": SimpleNamespace(multiprocessorCount=14),
    }
    return board, part


@pytest.mark.parametrize("setting", [None, "0", "MIG-1234"])
def test_a_mig_instance_is_named_apart_and_has_its_own_multiprocessors(install, monkeypatch, setting):
    board, part = mig()
    install(board, mig={"MIG-1234": (part, board)})
    if setting:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
    gpu = detect()
    assert (gpu.slug, gpu.uuid, gpu.sms) == ("a100-sxm4-40gb-mig-1g-5gb", "MIG-1234", 14)
    assert (gpu.arch, gpu.memory_bytes, gpu.max_sm_mhz) == ("sm_80", 5 << 30, 1980)
    assert clock_state(gpu.uuid).sm_mhz == 1755


def test_mig_without_an_instance_is_told(install):
    install(mig()[0])
    assert "MIG mode" in why_not()


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("Tesla T4", "t4"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-80gb-hbm3"),
        ("../../etc/passwd", "etc-passwd"),
        ("a{b}/c\n$(rm -rf) *", "a-b-c-rm-rf"),
        ("名前", "gpu"),
        ("NVIDIA", "gpu"),
        ("", "gpu"),
        ("x" * 500, "x" * 48),
    ],
)
def test_slugs_are_safe_names(name, slug):
    assert slug_of(name) == slug


@pytest.mark.parametrize(
    ("generation", "lanes", "gbytes_per_s"),
    [
        (1, 4, 1.0),
        (2, 16, 8.0),
        (3, 8, 7.877),
        (4, 16, 31.508),
        (5, 16, 63.015),
        (6, 16, 121.0),
        (7, 16, None),
    ],
)
def test_the_link_to_the_host_has_a_peak_by_generation_and_lanes(install, generation, lanes, gbytes_per_s):
    install(H200)
    gpu = replace(detect(), pcie_generation=generation, pcie_lanes=lanes)
    assert peaks(gpu, {}).pcie_gbytes_per_s_peak == pytest.approx(gbytes_per_s, abs=0.001)
    assert peaks(replace(gpu, pcie_lanes=0), {}).pcie_gbytes_per_s_peak is None


def test_an_entry_of_the_project_replaces_that_of_the_package(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "gpus.yaml").write_text("h200: {arch: sm_90, sms: 7, source: mine}")
    known = known_gpus(tmp_path)
    assert (known["h200"].sms, known["h200"].source) == (7, "mine")
    assert known["t4"] == known_gpus(PROJECT)["t4"]


def test_the_newest_cuda_version_of_the_driver_has_its_minor_number(install):
    driver = install(H200)
    driver.nvmlSystemGetCudaDriverVersion_v2 = lambda: 12_080
    assert detect().cuda_driver == "12.8"


def test_peaks_come_from_the_table_or_from_the_clocks(install):
    install(H200)
    gpu = detect()
    listed = peaks(gpu, known_gpus(PROJECT))
    assert (listed.fp32_tflops_peak, listed.dram_gbytes_per_s_peak) == (67, 4800)
    assert (listed.bf16_tflops_peak, peaks(gpu, {}).bf16_tflops_peak) == (989, None)
    assert "data sheet" in listed.source
    unknown = peaks(gpu, {})
    assert unknown.fp32_tflops_peak == pytest.approx(66.908, abs=0.001)  # 132 x 128 x 2 x 1.98 GHz
    assert unknown.dram_gbytes_per_s_peak == pytest.approx(4916.7, abs=0.1)
    assert "that the device reports" in unknown.source
    half_known = peaks(gpu, {"h200": KnownGpu(arch="sm_90", sms=132, dram_gbytes_per_s_peak=1, source="me")})
    assert (half_known.fp32_tflops_peak, half_known.dram_gbytes_per_s_peak) == (unknown.fp32_tflops_peak, 1)
    assert half_known.source == "me; computed from clocks and widths that the device reports"
    assert (listed.origins, unknown.origins) == (("data_sheet",), ("device",))
    assert half_known.origins == ("device", "data_sheet")
    own = KnownGpu(
        arch="sm_90", sms=132, fp32_tflops_peak=60, dram_gbytes_per_s_peak=1, origin="measured", source="me"
    )
    assert peaks(gpu, {"h200": own}).origins == ("measured",)
    silent = peaks(replace(gpu, sms=0, max_memory_mhz=0), {})
    assert (silent.fp32_tflops_peak, silent.dram_gbytes_per_s_peak) == (None, None)


@pytest.mark.parametrize(
    ("slug", "capability", "mhz", "memory_mhz", "bits"),
    [
        ("t4", (7, 5), 1590, 5001, 256),
        ("a100-sxm4-40gb", (8, 0), 1410, 1215, 5120),
        ("a100-sxm4-80gb", (8, 0), 1410, 1593, 5120),
        ("a10g", (8, 6), 1710, 6251, 384),
        ("rtx-4090", (8, 9), 2520, 10501, 384),
        ("h100-pcie", (9, 0), 1755, 1593, 5120),
    ],
)
def test_the_formulas_give_what_the_data_sheets_say(install, slug, capability, mhz, memory_mhz, bits):
    install(H200)
    table = known_gpus(PROJECT)
    entry = table[slug]
    gpu = replace(
        detect(),
        slug=slug,
        sms=entry.sms,
        compute_capability=capability,
        max_sm_mhz=mhz,
        max_memory_mhz=memory_mhz,
        memory_bus_bits=bits,
    )
    assert peaks(gpu, {}).fp32_tflops_peak == pytest.approx(entry.fp32_tflops_peak, rel=0.01)
    assert peaks(gpu, {}).dram_gbytes_per_s_peak == pytest.approx(entry.dram_gbytes_per_s_peak, rel=0.01)


_KNOWN = known_gpus(PROJECT)


@pytest.mark.parametrize("entry", _KNOWN.values(), ids=_KNOWN)
def test_listed_peaks_are_those_of_whole_units_at_the_listed_clocks(entry):
    """An SM does a power of two of operations per clock, so that a wrong peak, clock or number of SMs is seen."""
    rates = [(entry.fp32_tflops_peak, entry.fp32_peak_mhz), (entry.bf16_tflops_peak, entry.tensor_peak_mhz)]
    for tflops, mhz in rates:
        if tflops and mhz:
            exponent = math.log2(tflops * 1e6 / (entry.sms * mhz))
            assert exponent == pytest.approx(round(exponent), abs=0.015)
    ratios = [(entry.tf32_tflops_peak, 0.5), (entry.fp8_tflops_peak, 2.0)]
    assert all(
        peak == pytest.approx(ratio * entry.bf16_tflops_peak, rel=0.02) for peak, ratio in ratios if peak
    )


def test_who_else_is_there_and_how_it_is_set(install):
    install(H200)
    assert [(p.pid, p.memory_bytes) for p in processes()] == [(7, None), (42, 1 << 30)]
    assert settings() == {"ECC": "on", "MIG": "off", "persistence": "off", "compute mode": "default"}


@pytest.mark.gpu
def test_the_real_gpu_is_found():
    gpu = detect()
    assert gpu is not None, why_not()
    assert gpu.uuid
    assert gpu.sms > 0
    assert peaks(gpu, {}).fp32_tflops_peak > 1
    assert clock_state(gpu.uuid).sm_mhz > 0
