"""`warplog doctor` on a GPU: driver, access to counters, clocks, settings, other processes."""

from dataclasses import replace

import pytest
from msgspec import structs

from fake_driver import DESCRIBED as H200
from warplog.cli.checkup import gpu as gpu_checkup
from warplog.core import locks
from warplog.machine import wsl
from warplog.machine.clocks import ClockState
from warplog.machine.device import GpuProcess

CALM = ClockState(1755, 3201, 120.0, "instant", 41, (), False)


def outcome(finding):
    """The status of a finding, and whether it has a remedy."""
    return finding.status, bool(finding.remedy)


@pytest.mark.parametrize(
    ("changes", "nvcc", "status"),
    [
        ({}, "13.0.88", "ok"),
        ({"driver": "610.1"}, None, "ok"),
        ({"driver": "550.54.15", "cuda_driver": "12.4"}, None, "fail"),
        ({"driver": "550.54.15", "cuda_driver": "12.4"}, "13.0.88", "fail"),
        ({"driver": "550.54.15", "cuda_driver": "12.4"}, "12.4.99", "warn"),
        ({"driver": ""}, None, "ok"),
    ],
)
def test_the_driver_must_be_new_enough_for_the_compiler(changes, nvcc, status):
    finding = gpu_checkup.driver(structs.replace(H200, **changes), nvcc)
    assert outcome(finding) == (status, status != "ok")


def test_a_gpu_older_than_turing_cannot_be_used():
    assert gpu_checkup.identity(H200).status == "ok"
    assert outcome(gpu_checkup.identity(structs.replace(H200, compute_capability=(7, 0), arch="sm_70"))) == (
        "fail",
        True,
    )


def test_the_boards_of_the_machine_are_counted_and_busy_ones_named(monkeypatch):
    monkeypatch.setattr(locks, "is_held", lambda uuid: uuid == "GPU-bbbb")
    gpus = [H200, structs.replace(H200, uuid="GPU-bbbb"), structs.replace(H200, slug="h100", uuid="GPU-c")]
    finding = gpu_checkup.boards(gpus)
    assert finding.text == "2 x h200, 1 x h100; a campaign measures on GPU-bbbb"
    assert "gpu=all" in finding.remedy


@pytest.mark.parametrize(
    ("restricted", "capabilities", "driver", "status"),
    [
        ("0", "0000000000000000", "580.1", "ok"),
        ("1", "000001ffffffffff", "580.1", "ok"),
        ("1", "00000000a80425fb", "580.1", "warn"),  # root in a container without SYS_ADMIN
        ("1", f"{1 << 38:016x}", "580.1", "ok"),  # CAP_PERFMON
        ("1", f"{1 << 38:016x}", "550.1", "warn"),
        (None, "0000000000000000", "580.1", "info"),
    ],
)
def test_counters_require_the_drivers_permission_or_a_capability(
    tmp_path, restricted, capabilities, driver, status
):
    (tmp_path / "driver/nvidia").mkdir(parents=True)
    (tmp_path / "self").mkdir()
    (tmp_path / "self/status").write_text(f"Name:\tpython\nCapEff:\t{capabilities}\n")
    if restricted is not None:
        params = f"ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: {restricted}\nTest: 1\n"
        (tmp_path / "driver/nvidia/params").write_text(params)
    finding = gpu_checkup.counters(structs.replace(H200, driver=driver), tmp_path)
    assert finding.status == status
    assert ("NVreg_RestrictProfilingToAdminUsers=0" in finding.remedy) == (status == "warn")


def test_in_wsl_windows_permits_the_counters_whatever_linux_says(tmp_path, monkeypatch):
    (tmp_path / "dxg").touch()
    monkeypatch.setattr(wsl, "DEVICE", tmp_path / "dxg")
    (tmp_path / "self").mkdir()
    (tmp_path / "self/status").write_text("CapEff:\t000001ffffffffff\n")
    finding = gpu_checkup.counters(H200, tmp_path)
    assert finding.status == "info"
    assert "NVIDIA Control Panel" in finding.remedy
    assert "NVreg" not in finding.remedy
    topics = [finding.topic for finding in gpu_checkup.examine(H200)]
    assert "WSL" in topics
    monkeypatch.setattr(wsl, "DEVICE", tmp_path / "none")
    assert "WSL" not in [finding.topic for finding in gpu_checkup.examine(H200)]


@pytest.mark.parametrize(
    ("reasons", "clocks", "throttling"),
    [
        ((), "ok", "ok"),
        (("sw_power_cap",), "ok", "info"),
        (("hw_thermal_slowdown", "sw_power_cap"), "ok", "warn"),
        (("applications_clocks_setting",), "warn", "ok"),
    ],
)
def test_reasons_that_limit_the_clocks_are_reported(reasons, clocks, throttling):
    findings = gpu_checkup.clocks(H200, replace(CALM, throttle_reasons=reasons))
    assert [finding.status for finding in findings] == [clocks, throttling]
    assert "1755 of 1980 MHz" in findings[0].text
    assert all(finding.remedy for finding in findings if finding.status == "warn")


def test_values_that_a_gpu_does_not_report_are_question_marks_and_named():
    silent = ClockState(None, None, None, "", None, (), False, reports_reasons=False)
    clock, readings, throttling = gpu_checkup.clocks(H200, silent)
    assert "SM ? of 1980 MHz" in clock.text
    assert outcome(readings) == ("info", True)
    assert "not reported: SM clock, power, temperature" in readings.text
    assert (throttling.status, throttling.text) == ("info", "not reported")
    no_power = replace(CALM, power_w=None, power_kind="")
    _, readings, throttling = gpu_checkup.clocks(H200, no_power)
    assert (readings.status, readings.text.partition(":")[2].split(":")[0].strip()) == ("info", "power")
    assert (throttling.status, throttling.text) == ("ok", "none")
    assert gpu_checkup.settings({}).text == "not reported"


def test_settings_and_processes_that_disturb_measurements_are_reported():
    assert gpu_checkup.settings({"ECC": "on", "MIG": "off"}).status == "info"
    assert outcome(gpu_checkup.settings({"MIG": "on"})) == ("warn", True)
    assert outcome(gpu_checkup.settings({"compute mode": "prohibited"})) == ("fail", True)
    assert gpu_checkup.others([]).status == "ok"
    crowd = gpu_checkup.others([GpuProcess(pid, None) for pid in range(100_000, 100_020)])
    assert outcome(crowd) == ("warn", True)
    assert "and 12 more" in crowd.text
