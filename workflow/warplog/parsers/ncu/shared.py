"""Shared memory per block from a details page, which prints its parts but not their sum.

If the parts are printed to the byte, they determine the sum and the allocated amount. A scaled part, such as
`8.19 Kbyte/block`, only gives a range; values that are not the same over the whole range stay unknown.
"""

from collections.abc import Iterable

from warplog.metrics import METRICS
from warplog.metrics.occupancy import LIMITS, SmLimits
from warplog.parsers import units
from warplog.parsers.ncu import labels
from warplog.parsers.ncu.labels import Cell

_PRINTED = 0.005  # rounding error of a number with two decimals, in its printed unit
_MOST, _ALLOCATED = (
    slot.rstrip("?") for slot in METRICS["occupancy_limit_shared_memory_blocks"].counters[1:3]
)
_TOTAL = labels.counter_of("shared_bytes_per_block")


def counters(cells: Iterable[Cell], capability: tuple[int, int] | None) -> dict[str, float]:
    """Returns the counters of shared memory per block and per SM that the cells determine."""
    limits = LIMITS.get(capability) if capability else None
    parts = [_range(cell) for cell in cells if labels.is_part_of_shared(cell.section, cell.label)]
    if limits is None or len(parts) != len(labels.SHARED_PARTS):
        return {}
    low = sum(part[0] for part in parts) + limits.reserved_shared_bytes
    high = sum(part[1] for part in parts) + limits.reserved_shared_bytes
    found = {_MOST: float(limits.shared_bytes)}
    if low == high:
        found[_TOTAL] = low
    allocated = [_allocated(size, limits) for size in (low, high)]
    if len({_blocks(size, limits) for size in allocated}) == 1:
        found[_ALLOCATED] = allocated[0]
    return found


def settles_limit(found: dict[str, float]) -> bool:
    """Returns whether the limit by shared memory can be computed from these counters."""
    return _ALLOCATED in found


def _range(cell: Cell) -> tuple[float, float]:
    value, scale = units.number(cell.value), units.to_base(cell.unit)
    if value is None or scale is None or value < 0:
        return 0.0, float("inf")
    margin = _PRINTED * scale if scale > 1 else 0.0
    return max(0.0, value * scale - margin), value * scale + margin


def _allocated(size: float, limits: SmLimits) -> float:
    return -(-size // limits.shared_unit_bytes) * limits.shared_unit_bytes


def _blocks(size: float, limits: SmLimits) -> float | None:
    return limits.shared_bytes // size if size else None
