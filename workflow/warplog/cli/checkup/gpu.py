"""Checks the GPU: model, driver, access to its counters, clocks, settings, and other processes that use it."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from warplog.cli.checkup.finding import Finding
from warplog.core import locks
from warplog.core.paths import command
from warplog.machine import device, wsl
from warplog.machine.clocks import BRAKES, ClockState, clock_state
from warplog.records.campaign import Gpu

OLDEST_DRIVER = 580
OLDEST_ARCH = (7, 5)
_CAP_SYS_ADMIN, _CAP_PERFMON = 21, 38
_PERFMON_DRIVER = 565
_UNLOCK = (
    "run as root, or allow all users to read them: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0'"
    " | sudo tee /etc/modprobe.d/warplog.conf, then reboot; in a container: --cap-add=SYS_ADMIN"
)
_WSL = (
    "the GPU belongs to Windows, which sets its clocks and permits its counters; other programs of Windows that use it"
    " are not seen"
)


def examine(gpu: Gpu | None, nvcc: str | None = None, others_too: Sequence[Gpu] = ()) -> list[Finding]:
    """Returns all findings on the GPU; a single one if there is no GPU.

    Args:
        gpu: the first GPU.
        nvcc: version of the compiler.
        others_too: all GPUs of the machine.
    """
    if gpu is None:
        return [Finding("GPU", "info", f"none: {device.why_not()}; this machine cannot measure")]
    state = clock_state(gpu.uuid)
    return [
        identity(gpu),
        driver(gpu, nvcc),
        *([Finding("WSL", "info", _WSL)] if wsl.is_wsl() else []),
        counters(gpu),
        *(clocks(gpu, state) if state else []),
        settings(device.settings(gpu.uuid)),
        others(device.processes(gpu.uuid)),
        *([boards(others_too)] if len(others_too) > 1 else []),
    ]


def identity(gpu: Gpu) -> Finding:
    """Reports name, architecture and size; fails for a GPU that CUDA 13 does not support."""
    memory = f"{gpu.memory_bytes / (1 << 30):.0f} GiB" if gpu.memory_bytes else "memory size unknown"
    text = f"{gpu.name} ({gpu.slug}), {gpu.arch}, {gpu.sms or '?'} SMs, {memory}, {gpu.uuid}"
    if gpu.compute_capability < OLDEST_ARCH:
        return Finding("GPU", "fail", text, "CUDA 13 requires compute capability 7.5 (Turing) or newer")
    return Finding("GPU", "ok", text)


def boards(gpus: Sequence[Gpu]) -> Finding:
    """Reports the GPUs of the machine, and which of them are busy."""
    counts = Counter(gpu.slug for gpu in gpus)
    text = ", ".join(f"{count} x {slug}" for slug, count in counts.items())
    if busy := [gpu.uuid for gpu in gpus if locks.is_held(gpu.uuid)]:
        text += f"; a campaign measures on {', '.join(busy)}"
    return Finding("boards", "info", text, f"to use all GPUs of one model: {command('--config gpu=all')}")


def driver(gpu: Gpu, nvcc: str | None = None) -> Finding:
    """Reports whether the driver is new enough for CUDA 13, or else for the older nvcc of this machine."""
    text = f"{gpu.driver or 'unknown'}, up to CUDA {gpu.cuda_driver or '?'}"
    if not gpu.driver or _major(gpu.driver) >= OLDEST_DRIVER:
        return Finding("driver", "ok", text)
    if nvcc and _major(nvcc) <= _major(gpu.cuda_driver):
        remedy = f"install driver {OLDEST_DRIVER} or newer; until then, install CuPy as cupy-cuda12x"
        return Finding("driver", "warn", f"{text}; too old for CUDA 13, enough for nvcc {nvcc}", remedy)
    return Finding("driver", "fail", text, f"install driver {OLDEST_DRIVER} or newer, which CUDA 13 requires")


def counters(gpu: Gpu, proc: Path = Path("/proc")) -> Finding:
    """Reports whether ncu may read hardware counters, from the driver's setting and this process's capabilities."""
    topic = "GPU counters"
    if wsl.is_wsl():
        text = "unknown: Windows permits them; if it does not, campaigns have times but no counters"
        return Finding(topic, "info", text, wsl.COUNTERS_REMEDY)
    restricted = _field(proc / "driver/nvidia/params", "RmProfilingAdminOnly")
    if restricted == "0":
        return Finding(topic, "ok", "readable by every user")
    if _may_profile(gpu, _field(proc / "self/status", "CapEff")):
        return Finding(topic, "ok", "readable by this process, which has the required capability")
    if restricted == "":
        return Finding(topic, "info", "unknown: the driver does not report who may read them")
    return Finding(
        topic, "warn", "restricted to administrators: campaigns have times but no counters", _UNLOCK
    )


def _field(file: Path, name: str) -> str:
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(f"{name}:")), "")


def _may_profile(gpu: Gpu, capabilities: str) -> bool:
    try:
        held = int(capabilities, 16)
    except ValueError:
        return os.geteuid() == 0
    new = _major(gpu.driver) >= _PERFMON_DRIVER
    return bool(held >> _CAP_SYS_ADMIN & 1 or (new and held >> _CAP_PERFMON & 1))


def _major(version: str) -> int:
    major = version.split(".")[0]
    return int(major) if major.isdecimal() else 0


def clocks(gpu: Gpu, state: ClockState) -> list[Finding]:
    """Reports current clocks, power and temperature, which of them are not reported, and what limits the clocks."""
    values = [
        f"SM {_shown(state.sm_mhz)} of {gpu.max_sm_mhz or '?'} MHz",
        f"memory {_shown(state.memory_mhz)} MHz",
        f"{_shown(state.power_w)} of {_shown(gpu.power_limit_w)} W",
        f"{_shown(state.temperature_c)} °C",
    ]
    reasons = state.throttle_reasons
    if "applications_clocks_setting" in reasons:
        remedy = "compare times only with others at this setting; `nvidia-smi -q -d CLOCK` shows it"
        clock = Finding(
            "clocks", "warn", ", ".join(values) + "; limited by the application clocks setting", remedy
        )
    else:
        clock = Finding(
            "clocks", "ok", ", ".join(values) + "; not known to be locked (warplog never changes clocks)"
        )
    if hot := [reason for reason in reasons if reason in BRAKES]:
        return [
            clock,
            Finding("throttling", "warn", ", ".join(hot), "check cooling and power supply before measuring"),
        ]
    rest = [reason for reason in reasons if reason != "applications_clocks_setting"]
    shown = ", ".join(rest) or ("none" if state.reports_reasons else "not reported")
    throttling = Finding("throttling", "ok" if shown == "none" else "info", shown)
    return [clock, *readings(state), throttling]


def readings(state: ClockState) -> list[Finding]:
    """Reports the readings that the driver does not give, and what the tables lack without them."""
    lost = {
        "SM clock": (state.sm_mhz, "no SM clock of sustained runs (at rest, the timer measures it)"),
        "power": (state.power_w, "no energy per launch, and no time at the power limit"),
        "temperature": (state.temperature_c, ""),
    }
    absent = {name: without for name, (value, without) in lost.items() if value is None}
    if not absent:
        return []
    losses = "; ".join(filter(None, absent.values()))
    text = f"not reported: {', '.join(absent)}" + (f": {losses}" if losses else "")
    return [
        Finding(
            "readings",
            "info",
            text,
            "a current driver on Linux itself may report them; times are complete without",
        )
    ]


def settings(reported: dict[str, str]) -> Finding:
    """Reports ECC, MIG, persistence and compute mode; fails if the compute mode prohibits CUDA."""
    text = ", ".join(f"{name} {value}" for name, value in reported.items()) or "not reported"
    if reported.get("compute mode") == "prohibited":
        return Finding("GPU settings", "fail", text, "as an administrator, run: nvidia-smi -c DEFAULT")
    if reported.get("MIG") == "on":
        remedy = (
            "a MIG instance cannot read the counters of shared units (L2, device memory); use a whole GPU"
        )
        return Finding("GPU settings", "warn", text, remedy)
    return Finding("GPU settings", "info", text)


def others(processes: list[device.GpuProcess]) -> Finding:
    """Reports other processes that use the GPU, which would disturb measurements."""
    strangers = [process for process in processes if process.pid != os.getpid()]
    if not strangers:
        return Finding("GPU users", "ok", "no other processes")
    listed = ", ".join(f"pid {p.pid} ({_size(p.memory_bytes)})" for p in strangers[:8])
    more = f" and {len(strangers) - 8} more" if len(strangers) > 8 else ""
    return Finding(
        "GPU users", "warn", listed + more, "measure after they have ended; they disturb the times"
    )


def _size(memory_bytes: int | None) -> str:
    return "memory unknown" if memory_bytes is None else f"{memory_bytes / (1 << 20):.0f} MiB"


def _shown(value: float | None) -> str:
    return "?" if value is None else f"{value:.0f}"
