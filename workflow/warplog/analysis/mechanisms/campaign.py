"""Reads from the tables of a campaign what each variant does at each case, and how long it takes."""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from warplog.analysis.explanation import Sources
from warplog.analysis.mechanisms import ceilings, contention
from warplog.analysis.mechanisms.ceilings import Gpu
from warplog.analysis.mechanisms.code import (
    UNKNOWN,
    Code,
    chases,
    dependent,
    loads_in_flight,
    overlapped,
    store_waits,
)
from warplog.analysis.mechanisms.contention import Cases, Traced
from warplog.analysis.mechanisms.work import COUNTERS, Launch, work_of
from warplog.analysis.sass_steps import HotInstruction, Loop, bank_conflicts, hot_loops
from warplog.analysis.verdicts import Timed, noise_of
from warplog.catalog.family import Family
from warplog.core.columns import Row, number, text
from warplog.parsers.instruction import parse

Key = tuple[str, str, str]  # family, variant, case
Tables = Mapping[str, Sequence[Row]]  # the rows of tables, by name
TABLES = (
    *("metrics", "measurements", "floors", "variants", "gpus", "ceilings"),
    *(
        "instructions",
        "lines",
        "accesses",
        "traced_kernels",
        "changes",
        "launches",
        "steps",
    ),
)
_COUNTERS = frozenset(COUNTERS)
_REST = "rest"
_GENERIC = ("LD", "ST")
_AHEAD, _MOSTLY_PCT = 2, 50
_MULTICAST = re.compile(r"sass_\S*\.MULTICAST\b\S*")
_FLOAT_ATOMIC = re.compile(r"(?:RED|REDG|ATOM|ATOMG)\.\S*\bB?F(?:16|32|64)\S*")


@dataclass(frozen=True)
class Campaign:
    """What a campaign measured on one GPU.

    Attributes:
        launches: the kernels of each captured case whose counts are known.
        times: at rest.
        parents: by family and variant; "" for none.
        changes, lines, instructions: rows of these tables, by variant and case.
        accesses: rows of this table by family and variant, since other cases are traced than are profiled.
        bubbles_pct: share of the time in which tensor cores wait for the end of a tile, by variant and case.
        compulsory_bytes: what the algorithm has to move to and from device memory, by family and case.
        files: names of each variant's source and headers, the source first.
        others_us: what a step saves in all kernels but the longest, under ncu.
        ahead: those by whose timeline a producer that waits for room most of the time is two or more steps ahead, so
            that nothing waits for memory.
    """

    gpu: Gpu
    launches: Mapping[Key, Launch]
    times: Mapping[Key, Timed]
    parents: Mapping[tuple[str, str], str]
    changes: Mapping[Key, Sequence[Row]]
    lines: Mapping[Key, Sequence[Row]]
    instructions: Mapping[Key, Sequence[Row]]
    accesses: Mapping[tuple[str, str], Sequence[Row]]
    bubbles_pct: Mapping[Key, float]
    compulsory_bytes: Mapping[tuple[str, str], float]
    files: Mapping[tuple[str, str], Collection[str]] = field(default_factory=dict)
    others_us: Mapping[Key, float] = field(default_factory=dict)
    ahead: Collection[Key] = ()


def read(tables: Tables, sources: Mapping[str, Sources], families: Mapping[str, Family]) -> Campaign:
    """Returns what the tables TABLES hold; those that were made by jobs of their own may be empty.

    Args:
        tables: of one GPU.
        sources: of the variants of each family, as far as they are known.
        families: those in the tables, as far as they are known.
    """
    gpu = ceilings.read(tables["ceilings"], tables["gpus"][0])
    changes, lines, instructions = (_by_key(tables[name]) for name in ("changes", "lines", "instructions"))
    present = {_key(row)[:2]: row.get("source_sha256") for row in tables["variants"]}
    of_present = [row for row in tables["accesses"] if row["source_sha256"] == present.get(_key(row)[:2])]
    accesses: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in of_present:
        accesses[_key(row)[:2]].append(row)
    return Campaign(
        gpu,
        launches(
            tables["metrics"],
            tables["measurements"],
            codes(tables["instructions"], of_present),
            contention.traced(of_present, tables["traced_kernels"]),
            {name: family.case_values() for name, family in families.items()},
            gpu.sms,
        ),
        times(tables["measurements"], tables["floors"]),
        {(text(row, "family"), text(row, "variant")): text(row, "parent") for row in tables["variants"]},
        changes,
        lines,
        instructions,
        accesses,
        {_key(row): pct for row in tables["launches"] if not math.isnan(pct := number(row, "bubble_pct"))},
        {
            (name, case.name): family.amount(family.work.bytes, case, gpu.sms)
            for name, family in families.items()
            for case in family.cases.values()
        },
        {(family, name): texts.keys() for family, of in sources.items() for name, texts in of.items()},
        {_key(row): number(row, "parent_others_us") - number(row, "others_us") for row in tables["steps"]},
        {
            _key(row)
            for row in tables["launches"]
            if number(row, "lead_steps") >= _AHEAD and number(row, "producer_wait_pct") > _MOSTLY_PCT
        },
    )


def codes(instructions: Iterable[Row], accesses: Iterable[Row] = ()) -> dict[Key, Code]:
    """Returns what the table `instructions` tells of the longest kernel of each captured case, `accesses` of spaces."""
    rows = _by_key(instructions)
    shared = {(*_key(row)[:2], row.get("offset")) for row in accesses if row["space"] == "shared"}
    found = {}
    for key, loops in hot_loops(row for of_key in rows.values() for row in of_key).items():
        every = [instruction for loop in loops for instruction in loop.instructions]
        hottest = max(loops, key=lambda loop: sum(_executed(loop.instructions, "ldg")))
        by_address = sorted(rows[key], key=lambda row: number(row, "offset"))
        code = [parse(text(row, "text")) for row in by_address]
        executed = _counts(by_address, "executed")
        found[key] = Code(
            loads_in_flight([instruction.code for instruction in hottest.instructions], hottest.iterates),
            overlapped(code, executed),
            sum(_dependent(loop) for loop in loops),
            _lane_bytes(every, "ldg"),
            _lane_bytes(every, "stg"),
            _lane_bytes(every, "local"),
            any(_FLOAT_ATOMIC.fullmatch(instruction.code.opcode) for instruction in every),
            chases([instruction.code for instruction in hottest.instructions], hottest.iterates),
            *store_waits(code, executed, _counts(by_address, "samples")),
            sum(
                count
                for row, instruction, count in zip(by_address, code, executed, strict=True)
                if instruction.base in _GENERIC and (*key[:2], row["offset"]) in shared
            ),
            _port_conflicts(loops),
        )
    return found


def launches(
    metrics: Iterable[Row],
    measurements: Iterable[Row],
    known: Mapping[Key, Code],
    traced: Mapping[tuple[str, str], Sequence[Traced]],
    cases: Mapping[str, Cases],
    sms: float,
) -> dict[Key, Launch]:
    """Returns the kernels of each captured case whose counts are known, in the order of the launch.

    Args:
        metrics, measurements: rows of these tables; the clock is that of the timed launches.
        known: what the machine code of the longest kernel tells.
        traced: the kernels of each variant that were traced.
        cases: of each family.
    """
    clocks = {_key(row): number(row, "sm_mhz") for row in measurements}
    multicasting: set[tuple[str, str]] = set()
    kernels: dict[Key, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    names: dict[tuple[Key, int], str] = {}
    for row in metrics:
        if _MULTICAST.fullmatch(text(row, "metric")):
            multicasting.add(_key(row)[:2])
        elif row["tool"] == "ncu" and row["status"] == "ok" and row["metric"] in _COUNTERS:
            index = int(number(row, "launch"))
            kernels[_key(row)][index][text(row, "metric")] = number(row, "value")
            names[_key(row), index] = text(row, "kernel")
    found: dict[Key, Launch] = {}
    for key, of_launch in kernels.items():
        longest = max(of_launch, key=lambda index: of_launch[index].get("gpu_cycles", 0.0))
        works = [
            work_of(
                values,
                sms,
                clocks.get(key, math.nan),
                known.get(key, UNKNOWN) if index == longest else UNKNOWN,
                contention.per_request(
                    traced.get(key[:2], ()), cases.get(key[0], {}), key[2], names[key, index]
                ),
                key[:2] in multicasting and index == longest,
            )
            for index, values in sorted(of_launch.items())
        ]
        if all(works):
            found[key] = tuple(work for work in works if work)
    return found


def times(measurements: Iterable[Row], floors: Iterable[Row]) -> dict[Key, Timed]:
    """Returns the time at rest of each case, with its noise."""
    noises = {_key(row): noise_of(row) for row in floors if row["regime"] == _REST}
    return {
        key: Timed(number(row, "median_us"), noises.get(key, noise_of({})))
        for row in measurements
        for key in [_key(row)]
        if row["status"] == "ok" and number(row, "median_us") > 0
    }


def _key(row: Row) -> Key:
    return text(row, "family"), text(row, "variant"), text(row, "case")


def _by_key(rows: Iterable[Row]) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        found[_key(row)].append(row)
    return found


def _dependent(loop: Loop) -> float:
    steps = dependent([instruction.code for instruction in loop.instructions], loop.iterates)
    return 0.0 if math.isnan(loop.iterations) else steps * loop.iterations


def _port_conflicts(loops: Sequence[Loop]) -> float:
    """Returns the FFMAs that read their registers a cycle longer; NaN if the text does not have what is reused."""
    if not any(instruction.code.reused for loop in loops for instruction in loop.instructions):
        return math.nan
    return sum(
        instruction.executed
        for loop in loops
        for instruction, delayed in zip(loop.instructions, bank_conflicts(loop), strict=True)
        if delayed
    )


def _counts(rows: Iterable[Row], column: str) -> list[float]:
    values = (number(row, column) for row in rows)
    return [0.0 if math.isnan(value) else value for value in values]


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
