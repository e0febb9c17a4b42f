"""Reads from the tables of a campaign what each variant does at each case, and how long it takes."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from warplog.analysis.mechanisms.code import UNKNOWN, Code, loads_in_flight
from warplog.analysis.mechanisms.work import COUNTERS, Launch, work_of
from warplog.analysis.sass_steps import HotInstruction, hot_loops
from warplog.analysis.verdicts import Timed, noise_of
from warplog.core.columns import Row, number, text

Key = tuple[str, str, str]  # family, variant, case
_COUNTERS = frozenset(COUNTERS)


def codes(instructions: Iterable[Row]) -> dict[Key, Code]:
    """Returns what the table `instructions` tells of the longest kernel of each captured case."""
    found = {}
    for key, loops in hot_loops(instructions).items():
        every = [instruction for loop in loops for instruction in loop.instructions]
        hottest = max(loops, key=lambda loop: sum(_executed(loop.instructions, "ldg")))
        found[key] = Code(
            loads_in_flight([instruction.code for instruction in hottest.instructions], hottest.iterates),
            _lane_bytes(every, "ldg"),
            _lane_bytes(every, "stg"),
            any("MULTICAST" in instruction.code.opcode for instruction in every),
        )
    return found


def launches(
    metrics: Iterable[Row], measurements: Iterable[Row], known: Mapping[Key, Code], sms: float
) -> dict[Key, Launch]:
    """Returns the kernels of each captured case whose counts are known, in the order of the launch.

    Args:
        metrics, measurements: rows of these tables; the clock is that of the timed launches.
        known: what the machine code of the longest kernel tells.
    """
    clocks = {_key(row): number(row, "sm_mhz") for row in measurements}
    kernels: dict[Key, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in metrics:
        if row["tool"] == "ncu" and row["status"] == "ok" and row["metric"] in _COUNTERS:
            kernels[_key(row)][int(number(row, "launch"))][text(row, "metric")] = number(row, "value")
    found: dict[Key, Launch] = {}
    for key, of_launch in kernels.items():
        longest = max(of_launch, key=lambda index: of_launch[index].get("gpu_cycles", 0.0))
        works = [
            work_of(
                values,
                sms,
                clocks.get(key, math.nan),
                known.get(key, UNKNOWN) if index == longest else UNKNOWN,
            )
            for index, values in sorted(of_launch.items())
        ]
        if all(works):
            found[key] = tuple(work for work in works if work)
    return found


def times(measurements: Iterable[Row], floors: Iterable[Row]) -> dict[Key, Timed]:
    """Returns the time at rest of each case, with its noise."""
    noises = {_key(row): noise_of(row) for row in floors if row["regime"] == "rest"}
    return {
        key: Timed(number(row, "median_us"), noises.get(key, noise_of({})))
        for row in measurements
        for key in [_key(row)]
        if row["status"] == "ok" and number(row, "median_us") > 0
    }


def _key(row: Row) -> Key:
    return text(row, "family"), text(row, "variant"), text(row, "case")


def _executed(instructions: Sequence[HotInstruction], kind: str) -> list[float]:
    return [
        0.0 if math.isnan(instruction.executed) else instruction.executed
        for instruction in instructions
        if instruction.code.kind == kind
    ]


def _lane_bytes(instructions: Sequence[HotInstruction], kind: str) -> float:
    """Returns the bytes per lane of the mean executed access of a kind; NaN without one."""
    executed = _executed(instructions, kind)
    sizes = [instruction.code.bits / 8 for instruction in instructions if instruction.code.kind == kind]
    total = sum(executed)
    return sum(n * size for n, size in zip(executed, sizes, strict=True)) / total if total else math.nan
