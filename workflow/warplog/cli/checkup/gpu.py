"""The GPU: which one, its driver, its state, who else is on it, and whether its counters may be read."""

import os
from pathlib import Path

from warplog.cli.checkup.finding import Finding
from warplog.machine import device
from warplog.machine.clocks import BRAKES, ClockState, clock_state
from warplog.machine.device import Gpu

OLDEST_DRIVER = 580
OLDEST_ARCH = (7, 5)
_CAP_SYS_ADMIN, _CAP_PERFMON = 21, 38
_PERFMON_DRIVER = 565
_UNLOCK = (
    "run as root, or let users read them: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0'"
    " | sudo tee /etc/modprobe.d/warplog.conf, then reboot; in a container: --cap-add=SYS_ADMIN"
)


def examine(gpu: Gpu | None, nvcc: str | None = None) -> list[Finding]:
    """All about the GPU; one line where there is none. `nvcc` is the compiler's version."""
    if gpu is None:
        return [Finding("GPU", "info", f"none: {device.why_not()}; nothing is measured here")]
    state = clock_state(gpu.uuid)
    return [
        identity(gpu),
        driver(gpu, nvcc),
        counters(gpu),
        *(clocks(gpu, state) if state else []),
        settings(device.settings(gpu.uuid)),
        others(device.processes(gpu.uuid)),
    ]


def identity(gpu: Gpu) -> Finding:
    """Name, architecture, size."""
    memory = f"{gpu.memory_bytes / (1 << 30):.0f} GiB" if gpu.memory_bytes else "memory not told"
    text = f"{gpu.name} ({gpu.slug}), {gpu.arch}, {gpu.sms or '?'} SMs, {memory}, {gpu.uuid}"
    if gpu.compute_capability < OLDEST_ARCH:
        return Finding("GPU", "fail", text, "CUDA 13 needs compute capability 7.5 (Turing) or newer")
    return Finding("GPU", "ok", text)


def driver(gpu: Gpu, nvcc: str | None = None) -> Finding:
    """Whether the driver is new enough: for CUDA 13, or for the older nvcc that is here in its place."""
    text = f"{gpu.driver or 'unknown'}, up to CUDA {gpu.cuda_driver or '?'}"
    if not gpu.driver or _major(gpu.driver) >= OLDEST_DRIVER:
        return Finding("driver", "ok", text)
    if nvcc and _major(nvcc) <= _major(gpu.cuda_driver):
        remedy = f"a driver from {OLDEST_DRIVER} on; until then CuPy must be cupy-cuda12x"
        return Finding("driver", "warn", f"{text}; too old for CUDA 13, enough for nvcc {nvcc}", remedy)
    return Finding("driver", "fail", text, f"CUDA 13 needs driver {OLDEST_DRIVER} or newer")


def counters(gpu: Gpu, proc: Path = Path("/proc")) -> Finding:
    """Whether ncu may read hardware counters: the driver's setting against the rights of this process."""
    topic = "GPU counters"
    restricted = _field(proc / "driver/nvidia/params", "RmProfilingAdminOnly")
    if restricted == "0":
        return Finding(topic, "ok", "readable by every user")
    if _may_profile(gpu, _field(proc / "self/status", "CapEff")):
        return Finding(topic, "ok", "readable: this process has the right")
    if restricted == "":
        return Finding(topic, "info", "the driver does not tell who may read them; ncu will")
    return Finding(topic, "warn", "the driver keeps them for administrators: times, but no counters", _UNLOCK)


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
    """Clocks, power and temperature now, and what holds them down."""
    told = [
        f"SM {_shown(state.sm_mhz)} of {gpu.max_sm_mhz or '?'} MHz",
        f"memory {_shown(state.memory_mhz)} MHz",
        f"{_shown(state.power_w)} of {_shown(gpu.power_limit_w)} W",
        f"{_shown(state.temperature_c)} °C",
    ]
    reasons = state.throttle_reasons
    if "applications_clocks_setting" in reasons:
        remedy = "times are comparable only at this setting; `nvidia-smi -q -d CLOCK` shows it"
        clock = Finding("clocks", "warn", ", ".join(told) + "; held down by a setting", remedy)
    else:
        clock = Finding(
            "clocks", "ok", ", ".join(told) + "; not known to be locked, and never changed by warplog"
        )
    if hot := [reason for reason in reasons if reason in BRAKES]:
        return [
            clock,
            Finding("throttling", "warn", ", ".join(hot), "look after cooling and power, then measure"),
        ]
    rest = [reason for reason in reasons if reason != "applications_clocks_setting"]
    return [clock, Finding("throttling", "info" if rest else "ok", ", ".join(rest) or "none now")]


def settings(told: dict[str, str]) -> Finding:
    """ECC, MIG, persistence and compute mode."""
    text = ", ".join(f"{name} {value}" for name, value in told.items()) or "not told"
    if told.get("compute mode") == "prohibited":
        return Finding(
            "GPU settings", "fail", text, "an administrator allows it again: nvidia-smi -c DEFAULT"
        )
    if told.get("MIG") == "on":
        remedy = (
            "a MIG instance cannot read the counters of shared units (L2, device memory); use a whole GPU"
        )
        return Finding("GPU settings", "warn", text, remedy)
    return Finding("GPU settings", "info", text)


def others(found: list[device.GpuProcess]) -> Finding:
    """Processes beside this one: they take time and clocks from what is measured."""
    strangers = [process for process in found if process.pid != os.getpid()]
    if not strangers:
        return Finding("GPU users", "ok", "nobody else")
    told = ", ".join(f"pid {p.pid} ({_size(p.memory_bytes)})" for p in strangers[:8])
    more = f" and {len(strangers) - 8} more" if len(strangers) > 8 else ""
    return Finding("GPU users", "warn", told + more, "measure when they have ended: they disturb every time")


def _size(memory_bytes: int | None) -> str:
    return "memory not told" if memory_bytes is None else f"{memory_bytes / (1 << 20):.0f} MiB"


def _shown(value: float | None) -> str:
    return "?" if value is None else f"{value:.0f}"
