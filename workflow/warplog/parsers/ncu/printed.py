"""Launches that ncu printed as CSV or text, and the metrics computed from the printed values."""

import re
from dataclasses import dataclass, field
from math import prod

from warplog.metrics import METRICS, OPCODE_COUNTER, Evaluated, evaluate_any
from warplog.metrics.names import THREADS_COUNTER, THREADS_PER_INSTRUCTION
from warplog.metrics.occupancy import LIMITS
from warplog.parsers import units
from warplog.parsers.ncu.labels import COUNTERS, SHARED_PARTS, counter_of, metric_of, plain

_PRINTED = 0.005  # rounding error of a number with two decimals, in its printed unit
_LIMIT, _MOST_SHARED, _ALLOCATED = (
    slot.rstrip("?") for slot in METRICS["occupancy_limit_shared_memory_blocks"].counters[:3]
)
_OTHER_LIMITS = [counter_of(f"occupancy_limit_{name}_blocks") for name in ("warps", "registers", "blocks")]
_CONFIGURED = (
    "ncu prints the limit by the shared memory that the driver configured, not by the largest possible"
)
_CC = [f"device__attribute_compute_capability_{part}" for part in ("major", "minor")]
_NAME = "device__attribute_display_name"
KNOWN = COUNTERS | {_NAME, *_CC}


@dataclass
class PrintedLaunch:
    """One launch, with the sizes and the compute capability of its heading as printed, "" if it has none.

    On a page of `--print-summary` it stands for `invocations` launches, with the averages of their values; elsewhere
    that is 0. `labels` are those of a details page with their sections, in order. `counters` are the values in base
    units by counter, `labelled` those that a label shows; `notes` say why a printed value cannot be used.
    """

    kernel: str
    cc: str
    grid: str
    block: str
    invocations: int
    gpu_name: str = ""
    labels: dict[tuple[str, str], None] = field(default_factory=dict)
    counters: dict[str, float | None] = field(default_factory=dict)
    labelled: dict[str, float | None] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    shared: list[tuple[float, float]] = field(default_factory=list)  # least and most bytes of each part

    def add(self, section: str, label: str, unit: str, text: str) -> None:
        """Adds the value of a label or, without a section, of a counter; the registry uses only some of them."""
        if section:
            self.labels[section, label] = None
        if label == _NAME:
            self.gpu_name = self.gpu_name or text
        spelled = plain(label)
        metric = "" if label in KNOWN else metric_of(plain(section), spelled)
        if metric is None or not text.strip():
            return
        number, scale = units.number(text), units.to_base(unit)
        value = None if number is None or scale is None else number * scale
        if spelled in SHARED_PARTS and value is not None and scale is not None and value >= 0:
            margin = _PRINTED * scale if scale > 1 else 0.0
            self.shared.append((max(0.0, value - margin), value + margin))
        if metric == "issue_active_pct" and value is not None:
            value *= 0.01  # its counter is a ratio
        kept, name = (self.labelled, counter_of(metric)) if metric else (self.counters, label)
        if number is not None and scale is None:
            self.notes[name] = f"{label} has the unknown unit {unit[:40]!r}"
        if kept.get(name) is None:
            kept[name] = value

    @property
    def capability(self) -> tuple[int, int] | None:
        """The compute capability from the heading or else from the counters; None if both lack it."""
        if printed := re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,4})", self.cc):
            return int(printed[1]), int(printed[2])
        major, minor = map(self.counters.get, _CC)
        return None if major is None or minor is None else (int(major), int(minor))


def rows(launch: PrintedLaunch) -> list[Evaluated]:
    """Evaluates every metric that is computed from counters; "missing" if the page lacks a counter."""
    shown, notes = launch.labelled | _shared_memory(launch), dict(launch.notes)
    for metric, shape in (("grid_blocks", launch.grid), ("block_threads", launch.block)):
        sizes = [int(size) for size in re.findall(r"[0-9]{1,18}", shape)]
        if len(sizes) == 3:
            shown[counter_of(metric)] = float(prod(sizes))
    # Since 2022 ncu divides the amount that the driver configured: right only below the limits of all other resources.
    limit = None if _ALLOCATED in shown else shown.get(_LIMIT)
    if limit is not None and any(limit >= (shown.get(other) or 0.0) for other in _OTHER_LIMITS):
        del shown[_LIMIT]
        notes[_LIMIT] = _CONFIGURED
    counters = {**launch.counters, **shown, **{n: v for n, v in launch.counters.items() if v is not None}}
    if OPCODE_COUNTER in counters:
        notes[OPCODE_COUNTER] = f"a printed page contains only the sum of {OPCODE_COUNTER}, not its opcodes"
        executed, threads = counters.pop(OPCODE_COUNTER), counters.get(THREADS_COUNTER)
        if executed and threads is not None and counters.get(THREADS_PER_INSTRUCTION) is None:
            counters[THREADS_PER_INSTRUCTION] = threads / executed
    values = evaluate_any(counters, launch.capability, notes)
    summed = [Evaluated("ncu_launches", launch.invocations, "launch", "ok", "")] if launch.invocations else []
    return values + summed


def _shared_memory(launch: PrintedLaunch) -> dict[str, float | None]:
    """Returns the counters of shared memory per block and SM: a page contains the parts, but not their sum.

    A scaled part, such as `8.19 Kbyte/block`, only gives a range; what is not the same over the range stays unknown.
    """
    limits = LIMITS.get(launch.capability or (0, 0))
    if limits is None or len(launch.shared) != len(SHARED_PARTS):
        return {}
    low, high = (sum(ends) + limits.reserved_shared_bytes for ends in zip(*launch.shared, strict=True))
    unit, most = limits.shared_unit_bytes, float(limits.shared_bytes)
    counters: dict[str, float | None] = {_MOST_SHARED: most}
    if low == high:
        counters[counter_of("shared_bytes_per_block")] = low
    allocated = [-(-size // unit) * unit for size in (low, high)]
    if len({size and most // size for size in allocated}) == 1:
        counters[_ALLOCATED] = allocated[0]
    return counters
