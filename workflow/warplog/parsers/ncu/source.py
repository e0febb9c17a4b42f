"""Instructions and source lines of a profiled launch, with their executions and warp samples.

A counter with instances has one entry per instruction, whose correlation id is the instruction's address;
the line table of `nvcc -lineinfo` maps the address to file and line.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warplog.parsers.inputs import valid_unicode

NcuObject = Any  # objects of the package ncu_report, which has no type annotations

_SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
SAMPLING = "group:smsp__pcsamp_warp_stall_reasons"
_COUNTED = {
    "inst_executed": "instructions",
    "memory_l1_wavefronts_shared": "shared_wavefronts",
    "memory_l1_wavefronts_shared_ideal": "shared_wavefronts_ideal",
}
# Sectors that the addresses of a request are in, whether or not the L1 cache holds them, and its cache lines.
_OF_ACCESSES = {
    "thread_inst_executed_true": "lanes",
    "memory_l1_tag_requests_global": "global_lines",
    "memory_l2_theoretical_sectors_global": "global_sectors",
    "memory_l2_theoretical_sectors_local": "local_sectors",
}
# State names that differ between samples (keys) and counters (values).
_NAMES = {"no_instructions": "no_instruction", "warpgroup_arrive": "gmma"}
_COUNTS = _COUNTED | _OF_ACCESSES
ACCESS_COUNTERS = tuple(_COUNTS)
_MOST_INSTRUCTIONS = 200_000
_MOST_COUNTED = 2.0**45  # at one instruction; a damaged report may hold any number
_ADDRESS = re.compile(r"\b0x[0-9a-f]{9,16}\b")  # longer than any constant in an instruction


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


@dataclass(frozen=True)
class SourceInstruction:
    """One instruction of the kernel.

    Attributes:
        offset: bytes from the kernel's first instruction; targets of branches in `text` are such offsets, too.
        text: as it is disassembled, "@!P0 LDG.E R7, desc[UR4][R6.64]".
        file: path as passed to the compiler; "" without a line table.
        line: from 1; 0 without a line table.
        counts: what was counted at it, by its name in `SourceLine`, also lanes that were active, global_lines,
            global_sectors and local_sectors.
        samples: by state.
    """

    offset: int
    text: str
    file: str
    line: int
    counts: Mapping[str, float]
    samples: Mapping[str, float]


def instructions(action: NcuObject) -> tuple[SourceInstruction, ...]:
    """Returns the instructions of the launch that have counters, in order of their addresses; none without counters."""
    counts: dict[int, dict[str, float]] = defaultdict(dict)
    samples: dict[int, dict[str, float]] = defaultdict(dict)
    for name in action.metric_names():
        state = name.removeprefix(_SAMPLES) if _is_state(name) else ""
        kind, key = (samples, _NAMES.get(state, state)) if state else (counts, _COUNTS.get(name, ""))
        if key:
            for address, value in _instances(action.metric_by_name(name)):
                kind[address][key] = value
    addresses = sorted({*counts, *samples})
    return tuple(
        _instruction(action, address, addresses, counts[address], samples[address]) for address in addresses
    )


def _instruction(
    action: NcuObject,
    address: int,
    addresses: Sequence[int],
    counts: Mapping[str, float],
    samples: Mapping[str, float],
) -> SourceInstruction:
    first, last = addresses[0], addresses[-1]

    def relative(match: re.Match[str]) -> str:
        value = int(match[0], 16)
        return f"{value - first:#x}" if first <= value <= last else match[0]

    info = action.source_info(address)
    text = " ".join(valid_unicode(str(action.sass_by_pc(address))).split())
    return SourceInstruction(
        offset=address - first,
        text=_ADDRESS.sub(relative, text),
        file=valid_unicode(info.file_name()) if info else "",
        line=max(int(info.line()), 0) if info else 0,
        counts=counts,
        samples={state: value for state, value in samples.items() if value},
    )


def lines(code: Sequence[SourceInstruction]) -> tuple[SourceLine, ...]:
    """Returns the source lines of a launch, sorted by file and line; none if the code has no line table."""
    code_of: dict[tuple[str, int], list[SourceInstruction]] = defaultdict(list)
    for instruction in code:
        if instruction.line > 0 and (instruction.samples or any(instruction.counts.values())):
            code_of[instruction.file, instruction.line].append(instruction)
    return tuple(_line(*place, code_of[place]) for place in sorted(code_of))


def _is_state(name: str) -> bool:
    return name.startswith(_SAMPLES) and not name.endswith("_not_issued")


def _instances(metric: NcuObject) -> Iterator[tuple[int, float]]:
    """Yields address and value of each instruction, if it is a count."""
    entries = metric.num_instances()
    if not 0 < entries <= _MOST_INSTRUCTIONS or not metric.has_correlation_ids():
        return
    addresses = metric.correlation_ids()
    if addresses.kind() != addresses.ValueKind_UINT64:
        return
    for i in range(entries):
        value = metric.value(i)
        if isinstance(value, (int, float)) and 0 <= value < _MOST_COUNTED:
            yield int(addresses.value(i)), float(value)


def _line(file: str, line: int, code: Sequence[SourceInstruction]) -> SourceLine:
    samples: dict[str, float] = defaultdict(float)
    for instruction in code:
        for state, value in instruction.samples.items():
            samples[state] += value
    plain = {key: sum(instruction.counts.get(key, 0.0) for instruction in code) for key in _COUNTED.values()}
    return SourceLine(file, line, **plain, samples=dict(samples))
