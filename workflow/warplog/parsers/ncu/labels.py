"""The labels on ncu's details page, and the metric of the registry that each label shows.

Labels and section titles come from ncu's section files, 2019 to 2025; they differ between versions.
A printed value is used as the value of the first counter of its metric.
"""

import re

from warplog.metrics import METRICS
from warplog.metrics.counters import alternatives
from warplog.metrics.substitutes import INPUTS

SHARED_PARTS = ("static shared memory per block", "dynamic shared memory per block")
# By section, because the same label has different meanings, and in the spelling of `plain`; "" if no metric shows it.
# The last label of each section is the one that ncu prints last.
# fmt: off
SECTIONS = {
    "gpu speed of light throughput": {
        "duration": "duration_us", "elapsed cycles": "gpu_cycles", "sm frequency": "sm_mhz_in_ncu",
        "dram throughput": "dram_throughput_pct", "l2 cache throughput": "l2_throughput_pct",
        "l1/tex cache throughput": "l1_throughput_pct", "memory throughput": "memory_throughput_pct",
        "sm throughput": "sm_throughput_pct"},
    "pm sampling": {"# pass groups": ""},
    "compute workload analysis": {"executed ipc active": "ipc", "sm busy": ""},
    "memory workload analysis": {
        "memory throughput": "dram_gbytes_per_s", "l1/tex hit rate": "l1_hit_pct", "l2 hit rate": "l2_hit_pct",
        "mem pipes busy": ""},
    "scheduler statistics": {
        "one or more eligible": "issue_active_pct", "eligible warps per scheduler": "eligible_warps"},
    "warp state statistics": {
        "warp cycles per issued instruction": "warp_cycles_per_issue", "avg. not predicated off threads per warp": ""},
    "instruction statistics": {"executed instructions": "instructions_executed", "issued instructions": ""},
    "launch statistics": {
        "block size": "block_threads", "grid size": "grid_blocks", "registers per thread": "registers_per_thread",
        SHARED_PARTS[0]: "static_shared_bytes", SHARED_PARTS[1]: "", "waves per sm": "waves_per_sm"},
    "occupancy": {
        "theoretical occupancy": "theoretical_occupancy_pct", "achieved occupancy": "achieved_occupancy_pct",
        "block limit warps": "occupancy_limit_warps_blocks", "block limit sm": "occupancy_limit_blocks_blocks",
        "block limit registers": "occupancy_limit_registers_blocks",
        "block limit shared mem": "occupancy_limit_shared_memory_blocks",
        "block limit barriers": "occupancy_limit_barriers_blocks", "achieved active warps per sm": ""},
    "gpu and memory workload distribution": {"total smsp elapsed cycles": ""},
    "source counters": {"avg. divergent branches": ""},
}
# fmt: on
# No section whose labels show a metric follows these.
LAST_SECTIONS = ("occupancy", "gpu and memory workload distribution", "source counters")
_SLOTS = [slot for metric in METRICS.values() for slot in metric.counters if not slot.startswith("@")]
COUNTERS = INPUTS.union(*map(alternatives, _SLOTS))


def plain(text: str) -> str:
    """Returns a section title or label in one spelling for all versions: `SM [%]` and `SOL SM` as `sm throughput`."""
    words = " ".join(text.lower().split()).replace("compute (sm)", "sm")
    return re.sub(r"^sol (.+)$|^(.+) \[%\]$", r"\1\2 throughput", words)


def metric_of(section: str, label: str) -> str | None:
    """Returns the metric that a label shows in a section, both as `plain`; None if they are not in SECTIONS."""
    names = (name for name in SECTIONS if section.startswith(name.removesuffix(" throughput")))
    return SECTIONS.get(next(names, ""), {}).get(label)


def counter_of(metric: str) -> str:
    """Returns the first counter of a metric that is not another metric."""
    return next(alternatives(slot)[0] for slot in METRICS[metric].counters if not slot.startswith("@"))
