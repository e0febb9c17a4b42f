"""Source lines of a profiled launch, with their executed instructions and warp samples, from per-instruction counters.

A counter with instances has one entry per instruction, whose correlation id is the instruction's address;
the line table of `nvcc -lineinfo` maps the address to file and line.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

NcuObject = Any  # objects of the package ncu_report, which has no type annotations

_SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
SAMPLING = "group:smsp__pcsamp_warp_stall_reasons"
_COUNTED = {
    "inst_executed": "instructions",
    "memory_l1_wavefronts_shared": "shared_wavefronts",
    "memory_l1_wavefronts_shared_ideal": "shared_wavefronts_ideal",
}
# State names that differ between samples (keys) and counters (values).
_NAMES = {"no_instructions": "no_instruction", "warpgroup_arrive": "gmma"}
_MOST_INSTRUCTIONS = 200_000


@dataclass(frozen=True)
class SourceLine:
    """One source line, with the sums over all instructions that the compiler generated for it in this kernel.

    Attributes:
        file: path as passed to the compiler.
        instructions: executed instructions, counted per warp.
        shared_wavefronts: wavefronts of shared-memory accesses.
        shared_wavefronts_ideal: wavefronts that the same accesses would take without bank conflicts.
        samples: number of samples in which a warp was at this line, by the state of the warp ("selected": it issued).
    """

    file: str
    line: int
    instructions: float
    shared_wavefronts: float
    shared_wavefronts_ideal: float
    samples: Mapping[str, float]


def lines(action: NcuObject) -> tuple[SourceLine, ...]:
    """Returns the source lines of the launch, sorted by file and line; none if the code has no line table."""
    places: dict[int, tuple[str, int] | None] = {}
    counts: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for name in action.metric_names():
        key = _COUNTED.get(name) or (name if _is_state(name) else "")
        if not key:
            continue
        for address, value in _instances(action.metric_by_name(name)):
            if address not in places:
                info = action.source_info(address)
                places[address] = (info.file_name(), int(info.line())) if info else None
            if (place := places[address]) is not None and place[1] > 0:
                counts[place][key] += value
    return tuple(_line(*place, counts[place]) for place in sorted(counts))


def _is_state(name: str) -> bool:
    return name.startswith(_SAMPLES) and not name.endswith("_not_issued")


def _instances(metric: NcuObject) -> Iterator[tuple[int, float]]:
    """Yields address and value of each instruction with a nonzero value."""
    entries = metric.num_instances()
    if not 0 < entries <= _MOST_INSTRUCTIONS or not metric.has_correlation_ids():
        return
    addresses = metric.correlation_ids()
    if addresses.kind() != addresses.ValueKind_UINT64:
        return
    for i in range(entries):
        value = metric.value(i)
        if isinstance(value, (int, float)) and value:
            yield int(addresses.value(i)), float(value)


def _line(file: str, line: int, counts: Mapping[str, float]) -> SourceLine:
    states = {name.removeprefix(_SAMPLES): value for name, value in counts.items() if _is_state(name)}
    plain = {key: counts.get(key, 0.0) for key in _COUNTED.values()}
    return SourceLine(file, line, **plain, samples={_NAMES.get(k, k): v for k, v in states.items()})
