"""The labels on ncu's details page, and the metric of the registry that each label shows.

Labels and section titles come from ncu's section files, 2019 to 2025; they differ between versions.
A printed value is used as the value of the first counter of its metric.
"""

from types import MappingProxyType
from typing import NamedTuple

from warplog.metrics import METRICS
from warplog.metrics.counters import alternatives
from warplog.metrics.substitutes import INPUTS


class Label(NamedTuple):
    """The metric that a label shows; its counter is the printed number, in base units, times `factor`."""

    metric: str
    factor: float = 1.0


class Cell(NamedTuple):
    """A printed number with its unit; `label` is the label in the section or, if `section` is "", a counter name."""

    section: str
    label: str
    unit: str
    value: str


_SPEED = {
    "duration": Label("duration_us"),
    "elapsed cycles": Label("gpu_cycles"),
    "sm frequency": Label("sm_mhz_in_ncu"),
    **dict.fromkeys(("dram throughput", "sol dram"), Label("dram_throughput_pct")),
    **dict.fromkeys(("l2 cache throughput", "sol l2 cache"), Label("l2_throughput_pct")),
    **dict.fromkeys(("l1/tex cache throughput", "sol l1/tex cache"), Label("l1_throughput_pct")),
    **dict.fromkeys(("memory throughput", "memory [%]", "sol memory"), Label("memory_throughput_pct")),
    **dict.fromkeys(
        ("compute (sm) throughput", "compute (sm) [%]", "sm throughput", "sm [%]", "sol sm"),
        Label("sm_throughput_pct"),
    ),
}
_LAUNCH = {
    "block size": Label("block_threads"),
    "grid size": Label("grid_blocks"),
    "registers per thread": Label("registers_per_thread"),
    "static shared memory per block": Label("static_shared_bytes"),
    "waves per sm": Label("waves_per_sm"),
}
_OCCUPANCY = {
    "theoretical occupancy": Label("theoretical_occupancy_pct"),
    "achieved occupancy": Label("achieved_occupancy_pct"),
    "block limit warps": Label("occupancy_limit_warps_blocks"),
    "block limit registers": Label("occupancy_limit_registers_blocks"),
    "block limit sm": Label("occupancy_limit_blocks_blocks"),
    "block limit shared mem": Label("occupancy_limit_shared_memory_blocks"),
    "block limit barriers": Label("occupancy_limit_barriers_blocks"),
}
# Labels by the beginning of the section title; the same label has different meanings in different sections.
_SECTIONS = MappingProxyType(
    {
        "gpu speed of light": _SPEED,
        "memory workload analysis": {
            "memory throughput": Label("dram_gbytes_per_s"),
            "l1/tex hit rate": Label("l1_hit_pct"),
            "l2 hit rate": Label("l2_hit_pct"),
        },
        "compute workload analysis": {"executed ipc active": Label("ipc")},
        "scheduler statistics": {
            "one or more eligible": Label("issue_active_pct", 0.01),
            "eligible warps per scheduler": Label("eligible_warps"),
        },
        "warp state statistics": {"warp cycles per issued instruction": Label("warp_cycles_per_issue")},
        "instruction statistics": {"executed instructions": Label("instructions_executed")},
        "launch statistics": _LAUNCH,
        "occupancy": _OCCUPANCY,
    }
)
SHARED_PARTS = ("static shared memory per block", "dynamic shared memory per block")
COUNTERS = INPUTS | {
    name
    for metric in METRICS.values()
    for slot in metric.counters
    if not slot.startswith("@")
    for name in alternatives(slot)
}


def find(section: str, label: str) -> Label | None:
    """Returns the metric that ncu prints under this label in this section; None if the registry has none."""
    title, plain = _plain(section), _plain(label)
    for start, labels in _SECTIONS.items():
        if title.startswith(start):
            return labels.get(plain)
    return None


def is_part_of_shared(section: str, label: str) -> bool:
    """Returns whether this is one of SHARED_PARTS in the section "Launch Statistics"."""
    return _plain(label) in SHARED_PARTS and _plain(section).startswith("launch statistics")


def counter_of(metric: str) -> str:
    """Returns the first counter of a metric that is not another metric."""
    return next(alternatives(slot)[0] for slot in METRICS[metric].counters if not slot.startswith("@"))


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
