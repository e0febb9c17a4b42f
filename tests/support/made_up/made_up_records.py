"""Records of the stages with made-up values, of which a test names those that matter to it."""

from collections.abc import Sequence
from typing import Any

from warplog.core.statistics import summarise
from warplog.records import door
from warplog.records.build import Build, KernelCode
from warplog.records.campaign import Campaign, Gpu
from warplog.records.check import Check, CheckCase
from warplog.records.config import CheckSettings, TimelineSettings, TimeSettings
from warplog.records.extract import Event, Extract, HotLoop, Launched, MetricRow
from warplog.records.measured import Provenance, Session
from warplog.records.profile import CapturedCase, Profile
from warplog.records.requested.timeline import Timeline, TimelineCase
from warplog.records.time import Board, Cold, Hot, Process, Sustained, SustainedRun, Time, TimeCase

LIBRARY, SOURCE = "a" * 64, "b" * 64
_PROVENANCE = (
    *("compute_capability", "driver", "cuda_driver", "cuda_runtime", "commit", "content_sha256", "finished"),
    *("python", "cupy", "nvcc", "ncu", "nsys", "clocks"),
)
_OK = {"status": "ok", "reason": ""}
_OF = {"family": "scale", "variant": "right", "origin": "live", **_OK}
_MEASURED = {"gpu": "h200", "source_sha256": SOURCE, "library_sha256": LIBRARY}


def gpu(**changed: Any) -> Gpu:
    facts = {"slug": "h200", "name": "NVIDIA H200", "uuid": "GPU-1", "arch": "sm_90", "sms": 132}
    facts |= {"compute_capability": (9, 0), "memory_bytes": 0, "driver": "", "cuda_driver": ""}
    return Gpu(**{**facts, "max_sm_mhz": 1980, "power_limit_w": 700.0, "pci_bus_id": "", **changed})


def campaign(**changed: Any) -> Campaign:
    device = changed.pop("device", gpu())
    facts = {"campaign": "test", "gpu": device.slug, "gpu_name": device.name, "arch": device.arch}
    facts |= {"device": device, "origin": "live", "commit": "", "content_sha256": "", "tools": {}}
    return Campaign(**{**facts, **dict.fromkeys(("started", "driver", "cuda", "clocks"), ""), **changed})


def provenance(**changed: Any) -> Provenance:
    facts = {"gpu_name": "NVIDIA H200", "gpu_uuid": "GPU-1", **dict.fromkeys(_PROVENANCE, "")}
    return Provenance(**{**facts, **changed})


def build(**changed: Any) -> Build:
    facts = {**_OF, "arch": "sm_90", "source_sha256": SOURCE, "library_sha256": LIBRARY}
    facts |= {"parameters": {}, "command": (), "seconds": 3.0, "tools": {"nvcc": "13.0.88"}}
    return Build(**{**facts, **changed})


def kernel(name: str = "scale", **changed: Any) -> KernelCode:
    zero = ("static_shared_bytes", "constant_bytes", "stack_bytes", "spill_store_bytes", "spill_load_bytes")
    facts = {"kernel": name, "mangled": name, "registers_per_thread": 16, **dict.fromkeys(zero, 0)}
    return KernelCode(**{**facts, "barriers": 0, "sass_instructions": 1, "opcodes": {}, **changed})


def check(*errors: float, **changed: Any) -> Check:
    cases = tuple(
        CheckCase(case=f"{error:g}", rounds=1, max_abs_error=error, max_error_over_tolerance=error, **_OK)
        for error in errors
    )
    facts = {**_OF, **_MEASURED, "provenance": provenance(), "session": Session(), "cases": cases}
    return Check(**{**facts, "settings": CheckSettings(), **changed})


def time(*cases: TimeCase, **changed: Any) -> Time:
    facts = {**_OF, **_MEASURED, "provenance": provenance(), "session": Session(), "cases": cases}
    return Time(**{**facts, "check": "ok", "settings": TimeSettings(), **changed})


def time_case(case: str, cold_: Cold, processes: Sequence[Process], **changed: Any) -> TimeCase:
    """A case without a hot and a sustained time, unless they are named."""
    left_out = {f"no_{name}": "not_captured" for name in ("hot",) if name not in changed}
    left_out |= {f"no_{name}": "not_limited" for name in ("sustained",) if name not in changed}
    facts = {"warmup_launches": 3, "first_launch_us": 900.0, "launch_host_us": 2.5, "board": board()}
    facts |= {"case": case, "cold": cold_, "processes": tuple(processes), **_OK}
    return TimeCase(**{**facts, **left_out, **changed})


def board(**changed: Any) -> Board:
    facts = {
        "sm_mhz": 1630.0,
        "sm_mhz_min": 1620.0,
        "sm_mhz_max": 1980.0,
        "power_w": 300.0,
        "power_w_max": 310.0,
    }
    facts |= {"power_kind": "instant", "temperature_c": 40.0, "throttle_reasons": (), "state_samples": 9}
    return Board(**{**facts, **changed})


def cold(samples_us: Sequence[float], **changed: Any) -> Cold:
    facts = {**vars(summarise(samples_us)), "empty_us": 1.0, "discarded": 0, "not_blocked": 0}
    facts |= {"sm_mhz": 1630.0, "set_mhz": 1980.0, "sm_mhz_samples": (), "samples_us": tuple(samples_us)}
    return Cold(**{**facts, **changed})


def hot(samples_us: Sequence[float], **changed: Any) -> Hot:
    facts = {**vars(summarise(samples_us)), "samples_us": tuple(samples_us), "launches": 100}
    return Hot(**{**facts, **changed})


def process(number: int, median_us: float, samples: int, **changed: Any) -> Process:
    facts = {"process": number, "median_us": median_us, "samples": samples, "seed": 1, "addresses": ()}
    facts |= {"discarded": 0, "empty_us": 1.0, "pause_us": 0.0, "set_mhz": 1980.0, "first_launch_us": 900.0}
    return Process(**{**facts, "seconds": 0.1, **changed})


def run(mean_us: float, **changed: Any) -> SustainedRun:
    facts = {"sm_mhz": 1500.0, "power_w": 600.0, "limits": ("sw_power_cap",), "launches": 10, "seconds": 1.0}
    return SustainedRun(**{"mean_us": mean_us, **facts, **changed})


def sustained(mean_us: float, **changed: Any) -> Sustained:
    facts = {"sm_mhz": 1500.0, "power_w": 600.0, "limits": ("sw_power_cap",), "launches": 10, "seconds": 1.0}
    return Sustained(**{"mean_us": mean_us, **facts, "energy_j": None, **changed})


def profile(*cases: CapturedCase, **changed: Any) -> Profile:
    facts = {**_OF, **_MEASURED, "provenance": provenance(), "session": Session(), "cases": cases}
    return Profile(**{**facts, "tool": "nsys", "tool_version": "1", "command": (), **changed})


def timeline(*cases: TimelineCase, **changed: Any) -> Timeline:
    facts = {**_OF, **_MEASURED, "provenance": provenance(), "session": Session(), "cases": cases}
    return Timeline(**{**facts, "marked_sha256": "", "settings": TimelineSettings(), **changed})


def extract(
    rows: Sequence[MetricRow] = (),
    kernels: Sequence[Launched] = (),
    trace: Sequence[Event] = (),
    loops: Sequence[HotLoop] | None = None,
) -> Extract:
    contents = {"rows": tuple(rows), "kernels": tuple(kernels), "trace": tuple(trace), "lines": ()}
    kept = None if loops is None else tuple(loops)
    return Extract(**_OF, gpu="h200", captures=(), **contents, loops=kept)


def metric(
    name: str, case: str, kernel: str, launch: int, value: float | None, tool: str = "ncu"
) -> MetricRow:
    """A value of one launch, which the profiler could not read if it is None."""
    key = {"metric": name, "case": case, "kernel": kernel, "launch": launch, "unit": "us"}
    status = "ok" if value is not None else "missing"
    return MetricRow(**key, value=value, status=status, reason="", tool=tool, tool_version="1")


def launched(kernel: str, case: str = "64", **changed: Any) -> Launched:
    facts = {"case": case, "order": 0, "kernel": kernel, "grid": (1, 1, 1), "block": (32, 1, 1)}
    return Launched(**{**facts, "registers_per_thread": 16, "shared_bytes": 0, **changed})


def event(name: str, kind: str, case: str = "64", **changed: Any) -> Event:
    facts = {"case": case, "name": name, "kind": kind, "start_us": 0.0, "duration_us": 1.0}
    return Event(**{**facts, "stream": 1, "launch": 0, **changed})


def valid(record: Any) -> Any:
    """Returns the record as it is read back, so that it fits its type."""
    return door.decode(door.plain(record), type(record), "record")
