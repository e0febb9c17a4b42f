"""A kernel's memory chart: the units that its data pass through as boxes, and what moves between them as arrows.

It follows the memory chart of Nsight Compute (Kernel Profiling Guide, section "Memory Chart"), with the counters that
campaigns record. A counter that is missing is shown as n/a; what no counter covers is named.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warplog.core import columns
from warplog.core.numbers import short_number, with_unit
from warplog.metrics.occupancy import busy_share
from warplog.tables.files import as_rows

if TYPE_CHECKING:
    import pandas as pd

    from warplog.tables.view import FigureTables

METRICS = (
    "duration_us", "inst_ldg", "inst_ldl", "inst_stg",
    "global_load_sectors_per_request", "global_store_sectors_per_request",
    "inst_lds", "inst_ldsm", "inst_sts", "inst_stsm", "inst_hgmma", "inst_ldgsts", "inst_utmaldg", "inst_utmastg",
    "shared_wavefronts", "shared_conflict_ways", "l1_bytes", "l1_hit_pct", "l1_throughput_pct", "l2_bytes",
    "l2_hit_pct", "l2_throughput_pct", "dram_bytes_read", "dram_bytes_written", "dram_gbytes_per_s",
    "dram_throughput_pct", "dram_bytes", "tensor_memory_bytes_allocated", "tensor_memory_load_reads",
    "tensor_memory_store_writes", "tensor_memory_mma_reads", "tensor_memory_mma_writes", "tensor_memory_copy_writes",
)  # fmt: skip
NOTE = (
    "arrows: executed load and store instructions of all warps with sectors per request, or bytes; boxes: bytes looked "
    "up, share of the sectors found, and percent of the peak throughput; ▲ ▼ at least 10 % more or less than above"
)
EXPLANATION = (
    "Arrows of a memory chart are the executed load and store instructions of all warps, with the sectors per request,"
    " or the bytes that move. Requested are at most the bytes that L1 did not hold; sectors written count with all of"
    " their 32 bytes, and are at most (≤) those of the store instructions if some of these have no active thread. A box"
    " holds the bytes looked up, the share of sectors found, and the percent of the peak throughput over the elapsed"
    " cycles, which is one number for L1 and shared memory. ▲ and ▼ mark at least 10 % more or less than in the parent."
)
WIDTH, HEIGHT = 704.0, 200.0  # of a kernel that uses no tensor memory
# Left and right edge of each unit; the distances are those that the longest texts need.
_KERNEL, _L1, _L2, _DEVICE = (0.0, 62.0), (188.0, 318.0), (434.0, 526.0), (612.0, WIDTH)
_UPPER, _LOWER = (
    (0.0, 86.0),
    (114.0, HEIGHT),
)  # top and bottom of L1 and of shared memory, which lie above each other
_TENSOR = 228.0, 314.0  # of tensor memory, below shared memory
_ACTIVITY = ["instructions_executed", "ipc", "gpu_cycles"]
_CHANGE = 1.1  # a larger ratio to the parent, or its inverse, is marked
_ABSENT = "n/a"
_SECTOR = 32  # bytes
_IN_EXCESS = 1.02  # more than between the passes of one kernel from which counters come
_HEAD = 7.0  # length of an arrow's head


@dataclass(frozen=True)
class Box:
    """A unit, with lines of text below its name; `used` is the share of its peak throughput, 0 if unknown."""

    name: str
    lines: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float
    used: float = 0.0


@dataclass(frozen=True)
class Arrow:
    """A flow from one point to another, with text on both sides of it; nothing flows where `is_idle`."""

    start: tuple[float, float]
    end: tuple[float, float]
    above: str
    below: str = ""
    is_idle: bool = False

    @property
    def head(self) -> tuple[tuple[float, float], tuple[float, float], tuple[float, float]]:
        """The corners of the arrow's head."""
        (x0, y0), (x1, y1) = self.start, self.end
        length = math.hypot(x1 - x0, y1 - y0)
        dx, dy = _HEAD * (x1 - x0) / length, _HEAD * (y1 - y0) / length
        return (x1, y1), (x1 - dx + dy / 2, y1 - dy - dx / 2), (x1 - dx - dy / 2, y1 - dy + dx / 2)


@dataclass(frozen=True)
class MemoryChart:
    """The chart of one kernel."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that hold all boxes."""
        return max(box.x + box.width for box in self.boxes), max(box.y + box.height for box in self.boxes)


@dataclass(frozen=True)
class _Counters:
    """The metrics of a kernel beside those of its parent, as texts."""

    values: Mapping[str, float]
    parent: Mapping[str, float]

    def sum(self, *names: str) -> float:
        return sum(self.values.get(name, math.nan) for name in names)

    def text(self, unit: str, *names: str, bound: str = "") -> str:
        """Returns the sum of metrics with a unit, marked if it differs from the parent's; n/a if one is missing.

        `bound` is the sign before a number that is only a bound.
        """
        value = self.sum(*names)
        if math.isnan(value):
            return f"{_ABSENT} {unit}".strip()
        if unit == "B":
            shown = f"{short_number(value)}{'' if value >= 1e4 else ' '}B"
        else:
            shown = with_unit(value / 1e3, "ms") if unit == "us" and value >= 1e4 else with_unit(value, unit)
        before = sum(self.parent.get(name, math.nan) for name in names)
        more, less = value > _CHANGE * before, value < before / _CHANGE
        return f"{'▲ ' if more else '▼ ' if less else ''}{bound}{shown}"

    def percent(self, name: str, meaning: str) -> str:
        return f"{self.text('%', name)} {meaning}"


def kernel_metrics(tables: "FigureTables") -> "pd.DataFrame":
    """Returns the metrics of the chart by variant, of its longest kernel (see `FigureTables.counters`).

    ncu refers the throughput of L1 to the cycles in which an SM is active; as all others, it is returned in percent of
    the peak over the elapsed cycles.
    """
    rows = tables.counters([*METRICS, *_ACTIVITY])
    activities = ({name: columns.number(row, name) for name in _ACTIVITY} for row in as_rows(rows[_ACTIVITY]))
    busy = [busy_share(values, tables.peak("sms")) for values in activities]
    rows["l1_throughput_pct"] *= [share if share < 1 else 1.0 for share in busy]
    return rows.drop(columns=_ACTIVITY)


def turned(memory: MemoryChart) -> MemoryChart:
    """Returns the chart with the kernel at the top instead of the left, without tensor memory: it has no room there."""
    boxes = (
        replace(box, x=box.y, y=box.x, width=min(box.height, HEIGHT), height=box.width)
        for box in memory.boxes
        if box.y < HEIGHT
    )
    arrows = (
        replace(arrow, start=arrow.start[::-1], end=arrow.end[::-1])
        for arrow in memory.arrows
        if max(arrow.start[1], arrow.end[1]) <= HEIGHT
    )
    return replace(memory, boxes=tuple(boxes), arrows=tuple(arrows))


def chart(title: str, values: Mapping[str, float], parent: Mapping[str, float] | None = None) -> MemoryChart:
    """Returns the chart of a kernel with the metrics `values`; those that are missing are NaN or absent.

    With the metrics of its parent, values that differ from them by 10 % or more are marked.
    """
    counters = _Counters(_with_traffic(values), _with_traffic(parent or {}))
    return MemoryChart(title, tuple(_boxes(counters)), tuple(_arrows(counters)))


def _with_traffic(values: Mapping[str, float]) -> dict[str, float]:
    """Adds the bytes between L1 and L2 that follow from the counters.

    L1 is write-through, so that every stored sector goes to L2 (CUDA C++ Programming Guide, Compute Capability 5.x and
    later). What L1 requests is at most what is loaded, and at most the sectors that it did not hold; the latter contain
    sectors of stores. Instructions without an active thread are executed, but request nothing: if loads and stores
    would exceed what was looked up, the bytes of the stores are an upper bound, too.
    """
    counters = _Counters(values, {})
    loads, stored = (
        0.0
        if counters.sum(f"inst_{code}") == 0
        else _SECTOR * counters.sum(f"inst_{code}") * counters.sum(f"global_{access}_sectors_per_request")
        for code, access in (("ldg", "load"), ("stg", "store"))
    )
    looked_up = counters.sum("l1_bytes")
    is_bound = loads + stored > _IN_EXCESS * looked_up
    missed = looked_up * (1 - counters.sum("l1_hit_pct") / 100)
    loaded = looked_up if is_bound else max(looked_up - stored, 0.0)
    requested = 0.0 if loaded == 0 else min(loaded, missed) if missed >= 0 else math.nan
    return {
        **values,
        "l1_requested_bytes": requested,
        "l1_stored_bytes": stored,
        "l1_stored_is_bound": float(is_bound),
    }


def _boxes(counters: _Counters) -> Iterator[Box]:
    text, percent = counters.text, counters.percent
    bottom = _TENSOR[1] if _uses_tensor_memory(counters) else HEIGHT
    duration = text("us", "duration_us").replace("us", "µs")
    yield Box("Kernel", (duration,), *_place(_KERNEL, (0.0, bottom)))
    yield _cache(counters, "L1/TEX", "l1", _place(_L1, _UPPER))
    ways = text("-way", "shared_conflict_ways").replace(" -", "-")
    shared: tuple[str, ...] = (
        ("not used",)
        if counters.sum("shared_wavefronts") == 0
        else (text("wavefront", "shared_wavefronts"), ways)
    )
    yield Box("Shared", (*shared, *_besides_loads_and_stores(counters)), *_place(_L1, _LOWER))
    if _uses_tensor_memory(counters):
        allocated = f"{text('B', 'tensor_memory_bytes_allocated')} per SM"
        reads, writes = (f"{text('', f'tensor_memory_mma_{each}')} {each}" for each in ("reads", "writes"))
        lines = (allocated, reads, writes, f"by {_BY_THEMSELVES[_MMA]}")
        yield Box("Tensor memory", lines, *_place(_L1, _TENSOR))
    yield _cache(counters, "L2", "l2", _place(_L2))
    device = (text("GB/s", "dram_gbytes_per_s"), percent("dram_throughput_pct", "used"))
    yield Box("Device", device, *_place(_DEVICE), _share(counters, "dram_throughput_pct"))


def _uses_tensor_memory(counters: _Counters) -> bool:
    return counters.sum("tensor_memory_bytes_allocated") > 0


def _place(
    across: tuple[float, float], down: tuple[float, float] = (0.0, HEIGHT)
) -> tuple[float, float, float, float]:
    """Returns x, y, width and height of a unit."""
    return across[0], down[0], across[1] - across[0], down[1] - down[0]


def _cache(counters: _Counters, name: str, prefix: str, place: tuple[float, float, float, float]) -> Box:
    used = f"{prefix}_throughput_pct"
    hits = counters.percent(f"{prefix}_hit_pct", "hits")
    label = ("L1 and shared:",) if prefix == "l1" else ()
    lines = (counters.text("B", f"{prefix}_bytes"), hits, *label, counters.percent(used, "used"))
    return Box(name, lines, *place, _share(counters, used))


def _share(counters: _Counters, name: str) -> float:
    value = counters.sum(name)
    return 0.0 if math.isnan(value) else min(1.0, value / 100)


def _arrows(counters: _Counters) -> Iterator[Arrow]:
    """Yields the arrows between kernel, L1 and shared memory, then those of L2."""
    for access, y, backwards in (("load", 24, True), ("store", 66, False)):
        sectors = counters.text("sector/req.", f"global_{access}_sectors_per_request")
        count = "inst_ldg" if access == "load" else "inst_stg"
        flow = _flow(_KERNEL[1], _L1[0], y, backwards, counters, access, (count,), sectors)
        yield _other_loads(flow, counters, sectors) if access == "load" else flow
    yield _flow(
        _KERNEL[1],
        _L1[0],
        138,
        True,
        counters,
        "load",
        ("inst_lds", "inst_ldsm"),
        _besides(counters, "inst_hgmma") or _besides(counters, _MMA),
    )
    tma = _besides(counters, "inst_utmaldg")
    yield _flow(_KERNEL[1], _L1[0], 182, False, counters, "store", ("inst_sts", "inst_stsm"), tma)
    yield _bytes(counters, "l1_requested_bytes", "requested", (_L2[0], _L1[1]), 24, "≤ ")
    bound = "≤ " if counters.sum("l1_stored_is_bound") else ""
    yield _bytes(counters, "l1_stored_bytes", "sectors written", (_L1[1], _L2[0]), 66, bound)
    if counters.sum("inst_ldgsts") != 0:
        yield Arrow(
            (268, _UPPER[1]), (268, _LOWER[0]), "", f"{counters.text('', 'inst_ldgsts')} async copies"
        )
    for access, y, backwards in (("load", 142, True), ("store", 182, False)):
        name = f"inst_utma{'ldg' if access == 'load' else 'stg'}"
        if counters.sum(name) != 0:
            yield _flow(_L1[1], _L2[0], y, backwards, counters, f"TMA {access}", (name,))
    if _uses_tensor_memory(counters):
        for access, metric, y, backwards in (
            ("read", "load_reads", 250, True),
            ("write", "store_writes", 292, False),
        ):
            yield _flow(_KERNEL[1], _L1[0], y, backwards, counters, access, (f"tensor_memory_{metric}",))
        if counters.sum("tensor_memory_copy_writes") != 0:
            copied = counters.text("", "tensor_memory_copy_writes")
            yield Arrow((268, _LOWER[1]), (268, _TENSOR[0]), "", f"{copied} writes by copies")
    if math.isnan(counters.sum("dram_bytes_read")) and counters.sum("dram_bytes") >= 0:
        yield _bytes(counters, "dram_bytes", "read, written", (_DEVICE[0], _L2[1]), 70)
        return
    yield _bytes(counters, "dram_bytes_read", "read", (_DEVICE[0], _L2[1]), 70)
    yield _bytes(counters, "dram_bytes_written", "written", (_L2[1], _DEVICE[0]), 130)


def _flow(
    left: float, right: float, y: float, backwards: bool, counters: _Counters, access: str, names: tuple[str, ...],
    below: str = "",
) -> Arrow:  # fmt: skip
    """Returns an arrow for instructions of a kind: how many, or that there are none."""
    ends = (right, left) if backwards else (left, right)
    if counters.sum(*names) == 0:
        note = below if below.startswith(_BESIDES) else ""
        return Arrow((ends[0], y), (ends[1], y), f"no {access}s", note, is_idle=True)
    return Arrow((ends[0], y), (ends[1], y), f"{counters.text('', *names)} {access}s", below)


_BESIDES = "besides "
_MMA = "tensor_memory_mma_writes"
_BY_THEMSELVES = {
    "inst_hgmma": "wgmma",
    _MMA: "tcgen05",
    "inst_utmaldg": "TMA",
}  # what accesses shared memory without loads and stores


def _besides_loads_and_stores(counters: _Counters) -> tuple[str, ...]:
    """Returns what accesses shared memory without load and store instructions: "read by wgmma", "written by TMA"."""
    verbs = {"inst_hgmma": "read by", _MMA: "read by", "inst_utmaldg": "written by"}
    return tuple(f"{verb} {_BY_THEMSELVES[name]}" for name, verb in verbs.items() if _besides(counters, name))


def _besides(counters: _Counters, name: str) -> str:
    return f"{_BESIDES}{_BY_THEMSELVES[name]}" if counters.sum(name) > 0 else ""


def _other_loads(flow: Arrow, counters: _Counters, sectors: str) -> Arrow:
    """Returns the arrow of global loads with those of another kind: generic ones, which are not counted, or local ones.

    Requests without LDG and LDGSTS instructions are generic loads (LD).
    """
    if counters.sum("inst_ldg") != 0:
        return flow
    if counters.sum("inst_ldgsts") == 0 and counters.sum("global_load_sectors_per_request") > 0:
        return replace(flow, above=f"{_ABSENT} (generic loads)", below=sectors, is_idle=False)
    if counters.sum("inst_ldl") > 0:
        return replace(flow, above=f"{counters.text('', 'inst_ldl')} local loads", is_idle=False)
    return flow


def _bytes(
    counters: _Counters, name: str, label: str, ends: tuple[float, float], y: float, bound: str = ""
) -> Arrow:
    """Returns an arrow for bytes, with a sign before the number if they are only a bound."""
    idle = counters.sum(name) == 0
    shown = counters.text("B", name, bound="" if idle else bound)
    return Arrow((ends[0], y), (ends[1], y), shown, label, is_idle=idle)
