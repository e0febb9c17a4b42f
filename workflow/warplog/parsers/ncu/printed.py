"""Launches that ncu printed as CSV or text, and the metrics computed from the printed values."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

from warplog.metrics import METRICS, OPCODE_COUNTER, Evaluated, evaluate_any
from warplog.parsers import units
from warplog.parsers.ncu import labels as ncu_labels
from warplog.parsers.ncu import shared as ncu_shared
from warplog.parsers.ncu.labels import Cell

_SHARED_LIMIT = "occupancy_limit_shared_memory_blocks"
_OTHER_LIMITS = tuple(f"occupancy_limit_{name}_blocks" for name in ("warps", "registers", "blocks"))
_CONFIGURED = (
    "ncu prints the limit by the shared memory that the driver configured, not by the largest possible"
)
_NO_ENTRIES = f"a printed page contains only the sum of {OPCODE_COUNTER}, not its opcodes"
_CC = "device__attribute_compute_capability_{}"
_NAME = "device__attribute_display_name"
KNOWN = ncu_labels.COUNTERS | {_NAME, *(_CC.format(part) for part in ("major", "minor"))}


@dataclass
class PrintedLaunch:
    """One launch; `compute_capability`, `grid` and `block` are None if its heading does not contain them.

    On a page of `--print-summary` it stands for `invocations` launches, with the averages of their values.
    """

    kernel: str
    compute_capability: tuple[int, int] | None = None
    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    invocations: int | None = None
    cells: list[Cell] = field(default_factory=list)
    labels: list[tuple[str, str]] = field(default_factory=list)

    def add_counter(self, name: str, unit: str, value: str) -> None:
        """Adds a counter; one that the registry does not use is dropped."""
        if name in KNOWN and value.strip():
            self.cells.append(Cell("", name, unit, value))

    def add(self, section: str, label: str, unit: str, value: str) -> None:
        """Adds a value; one that the registry does not use is dropped, but its label is kept to detect truncation."""
        self.labels.append((section, label))
        used = ncu_labels.find(section, label) or ncu_labels.is_part_of_shared(section, label)
        if value.strip() and (label in KNOWN or used):
            self.cells.append(Cell(section, label, unit, value))

    @property
    def gpu_name(self) -> str:
        """The name of the GPU, "" if the page does not contain it; only raw pages do."""
        return next((cell.value for cell in self.cells if cell.label == _NAME), "")

    @property
    def capability(self) -> tuple[int, int] | None:
        """The compute capability from the heading or else from the counters; None if both lack it."""
        if self.compute_capability is not None:
            return self.compute_capability
        cells = {cell.label: cell.value for cell in self.cells}
        major, minor = (units.number(cells.get(_CC.format(part), "")) for part in ("major", "minor"))
        return None if major is None or minor is None else (int(major), int(minor))


def rows(launch: PrintedLaunch) -> list[Evaluated]:
    """Evaluates every metric that is computed from counters; "missing" if the page lacks a counter."""
    counters, notes = _counters(launch)
    opcodes = {OPCODE_COUNTER: counters.pop(OPCODE_COUNTER)} if OPCODE_COUNTER in counters else {}
    notes = notes if not opcodes else {**notes, OPCODE_COUNTER: _NO_ENTRIES}
    found = evaluate_any(counters, launch.capability, notes)
    if opcodes:
        summed = evaluate_any({**counters, **opcodes}, launch.capability, notes)
        whole = {each.metric: each for each in summed}
        found = [whole[each.metric] if _reads_sum(each.metric) else each for each in found]
    return found


def _reads_sum(metric: str) -> bool:
    return any(slot.rstrip("?") == OPCODE_COUNTER for slot in METRICS[metric].counters)


def _counters(launch: PrintedLaunch) -> tuple[dict[str, float | None], dict[str, str]]:
    """Returns the counters in base units, and why printed counters cannot be used, by counter name."""
    raw: dict[str, float | None] = {}
    labelled: dict[str, float | None] = {}
    notes: dict[str, str] = {}
    for cell in launch.cells:
        label = None if cell.label in KNOWN else ncu_labels.find(cell.section, cell.label)
        if label is None and cell.label not in KNOWN:
            continue
        name = cell.label if label is None else ncu_labels.counter_of(label.metric)
        scale = units.to_base(cell.unit)
        value = units.number(cell.value)
        if value is not None and scale is None:
            notes[name] = f"{cell.label} has the unknown unit {cell.unit[:40]!r}"
        scaled = None if value is None or scale is None else value * scale * (label.factor if label else 1.0)
        kept = raw if label is None else labelled
        if kept.get(name) is None:
            kept[name] = scaled
    labelled.update(_shape(launch))
    shared = ncu_shared.counters(launch.cells, launch.capability)
    labelled.update(shared)
    if _may_be_configured(labelled) and not ncu_shared.settles_limit(shared):
        labelled.pop(name := ncu_labels.counter_of(_SHARED_LIMIT))
        notes[name] = _CONFIGURED
    better = {name: value for name, value in raw.items() if value is not None or name not in labelled}
    return labelled | better, notes


def _shape(launch: PrintedLaunch) -> Iterator[tuple[str, float]]:
    for metric, size in (("grid_blocks", launch.grid), ("block_threads", launch.block)):
        if size is not None:
            yield ncu_labels.counter_of(metric), float(prod(size))


def _may_be_configured(counters: dict[str, float | None]) -> bool:
    """Returns whether the limit by shared memory may be that of the configured instead of the largest amount.

    Since 2022 ncu divides the amount that the driver configured; this is the right limit only if it is below the
    limits of all other resources.
    """
    limit = counters.get(ncu_labels.counter_of(_SHARED_LIMIT))
    others = [counters.get(ncu_labels.counter_of(name)) for name in _OTHER_LIMITS]
    return limit is not None and any(other is None or limit >= other for other in others)
