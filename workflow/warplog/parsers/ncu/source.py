"""Source lines of a profiled launch: what each executed and where warps waited, from counters kept per instruction.

A counter with instances has one entry for each instruction, whose correlation id is the instruction's address;
the line table of `nvcc -lineinfo` leads from there to file and line.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

NcuObject = Any  # what the package ncu_report hands out; it has no types

_SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
SAMPLING = "group:smsp__pcsamp_warp_stall_reasons"
_COUNTED = {
    "inst_executed": "instructions",
    "memory_l1_wavefronts_shared": "shared_wavefronts",
    "memory_l1_wavefronts_shared_ideal": "shared_wavefronts_ideal",
}
_NAMES = {"no_instructions": "no_instruction", "warpgroup_arrive": "gmma"}  # of samples: of counters
_MOST_INSTRUCTIONS = 200_000


@dataclass(frozen=True)
class SourceLine:
    """One line of one file, with all instructions that the compiler made of it in this kernel.

    Attributes:
        file: as the compiler was given it.
        instructions: executed, counted per warp; shared_wavefronts and their least number likewise.
        samples: looks at a warp that was at this line, by the state it was in ("selected": it issued).
    """

    file: str
    line: int
    instructions: float
    shared_wavefronts: float
    shared_wavefronts_ideal: float
    samples: Mapping[str, float]


def lines(action: NcuObject) -> tuple[SourceLine, ...]:
    """The launch's source lines, by file and line; none where the code has no line table."""
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
    """Address and value of each instruction's entry."""
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
