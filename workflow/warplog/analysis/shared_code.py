"""What a variant is compared with besides its parent: a faster ancestor, and a variant with the same kernel."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from warplog.analysis import verdicts
from warplog.core.columns import Row, number, text
from warplog.metrics.kernels import compiled_kernel
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables

_SHAPE = ("registers_per_thread", "grid_blocks", "block_threads", "shared_bytes_per_block")
_EXECUTED = "instructions_executed"
_SASS, _WHOLE, _REGISTERS = "sass_", "sass_instructions", "registers_per_thread"
_SAME = 1e-3  # polls of a flag or a barrier vary in number


@dataclass(frozen=True)
class Twin:
    """A variant that launches the same kernel at a case.

    Attributes:
        variant: Its name.
        same: Whether the machine code is the same too, as far as the records show.
        instructions: The number of instructions in the machine code of the twin and of this variant.
        registers: Registers per thread of this variant's kernel.
    """

    variant: str
    same: bool
    instructions: tuple[int, int]
    registers: int


class _Compiled(NamedTuple):
    kernel: str
    registers_per_thread: int
    sass_instructions: float


@dataclass(frozen=True)
class _Launched:
    """A variant's longest kernel: its name without namespaces, launch, executed instructions and machine code.

    `kernels` is how many the variant launches, the longest included: others beside the same one make a difference.
    """

    name: str
    kernels: int
    shape: tuple[float, ...]
    executed: float
    opcodes: Mapping[str, float]


def faster_ancestor(rows: Mapping[str, Row], name: str) -> str:
    """Returns the ancestor that is faster than the parent of a variant that gains over its parent; otherwise "".

    A part of such a gain only wins back what the parent had lost.

    Args:
        rows: The rows of the ladder at a case, by variant.
        name: The variant.
    """
    parent = text(rows.get(name, {}), "parent")
    if not _is_faster(rows, name, parent):
        return ""
    place = parent
    while _is_faster(rows, above := text(rows[place], "parent"), place):
        place = above
    return place if place != parent else ""


def _is_faster(rows: Mapping[str, Row], name: str, other: str) -> bool:
    """Returns whether a variant is faster than another one, beyond noise."""
    pair = rows.get(name, {}), rows.get(other, {})
    return 0 < time_us(pair[0]) < time_us(pair[1]) and not verdicts.tied(*pair)


def twins(tables: FigureTables, sources: Mapping[str, Sequence[str]]) -> dict[str, Twin]:
    """Returns for each variant one that launches the same kernel at the profiled case: its parent, or an earlier one.

    Variants that share a source differ in parameters, so they are not compared. Otherwise two kernels are the same
    - if name, launch, machine code (instructions by opcode) and executed instructions are equal, or
    - if all but the name are equal and the times are tied within noise.
    If a variant includes the source of another one and launches the kernel of that name, only the compiler may have
    made a difference.

    Args:
        tables: The tables of the family.
        sources: The file names of each variant's source and headers, the source first.
    """
    rows: dict[str, Row] = {str(row["variant"]): row for row in as_rows(tables.ladder(tables.profiled_case))}
    launched: dict[str, _Launched] = {
        name: kernel
        for name, kernel in _launched(tables).items()
        if sources.get(name) and rows[name]["status"] == "ok"
    }
    by_variant = {}
    for place, name in enumerate(launched):
        parent = text(rows[name], "parent")
        others = [
            other
            for other in dict.fromkeys((parent, *list(launched)[:place]))
            if other in launched and other != name
        ]
        others = [other for other in others if sources[other][0] != sources[name][0]]
        each = [_twin(other, name, launched, rows, sources[other][0] in sources[name]) for other in others]
        twin = min(filter(None, each), key=lambda twin: not twin.same, default=None)
        if twin:
            by_variant[name] = twin
    return by_variant


def classes(by_variant: Mapping[str, Twin], order: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Returns, for each variant that launches the same kernel as another one, all variants that do, in ladder order.

    Args:
        by_variant: The result of `twins`.
        order: The variants in ladder order.
    """
    roots = {}
    for name in order:
        root = name
        while root in by_variant and by_variant[root].same and by_variant[root].variant not in (name, root):
            root = by_variant[root].variant
        roots[name] = root
    alike = {name: tuple(other for other in order if roots[other] == roots[name]) for name in order}
    return {name: members for name, members in alike.items() if len(members) > 1}


def best(
    rows: Mapping[str, Row], alike: Mapping[str, Sequence[str]], others: Sequence[Mapping[str, Row]]
) -> str:
    """Returns the fastest variant besides the baseline; "" if none has a time.

    Of several that launch its kernel, the one that is the fastest, or tied with it, in most cases.

    Args:
        rows: The rows of the ladder at the headline case, by variant.
        alike: The result of `classes`.
        others: The rows at each case, by variant.
    """
    own = [name for name in rows if time_us(rows[name]) > 0 and not rows[name]["is_baseline"]]
    if not own:
        return ""
    first = min(own, key=lambda name: time_us(rows[name]))
    return max(alike.get(first, (first,)), key=lambda name: sum(_wins(name, own, case) for case in others))


def _wins(name: str, own: Sequence[str], rows: Mapping[str, Row]) -> bool:
    timed = [other for other in own if time_us(rows.get(other, {})) > 0]
    if name not in timed:
        return False
    first = min(timed, key=lambda other: time_us(rows[other]))
    return name == first or verdicts.tied(rows[name], rows[first])


def time_us(row: Row) -> float:
    """Returns the time at rest in microseconds; NaN if the row has none."""
    return number(row, "median_us") if row.get("status") == "ok" else math.nan


def _twin(
    other: str, name: str, launched: Mapping[str, _Launched], rows: Mapping[str, Row], included: bool
) -> Twin | None:
    theirs, own = launched[other], launched[name]
    tied = verdicts.tied(rows[other], rows[name])
    same = _same_code(theirs, own) and (theirs.name == own.name or tied)
    if not same and not (included and theirs.name == own.name):
        return None
    instructions = (int(theirs.opcodes.get(_WHOLE, 0)), int(own.opcodes.get(_WHOLE, 0)))
    return Twin(other, same, instructions, int(own.shape[0]))


def _same_code(kernel: _Launched, other: _Launched) -> bool:
    alike = (kernel.kernels, kernel.shape) == (other.kernels, other.shape)
    alike = alike and abs(kernel.executed - other.executed) <= _SAME * kernel.executed
    return alike and bool(kernel.opcodes) and kernel.opcodes == other.opcodes


def _launched(tables: FigureTables) -> dict[str, _Launched]:
    compiled = _compiled(tables)
    captured = tables.metrics[
        (tables.metrics["case"] == tables.profiled_case) & (tables.metrics["tool"] == "ncu")
    ]
    kernels_of = captured.groupby("variant")["launch"].nunique()
    launched = {}
    for row in as_rows(tables.counters([*_SHAPE, _EXECUTED])):
        shape = tuple(number(row, name) for name in _SHAPE)
        if any(map(math.isnan, shape)):
            continue
        built = compiled.get(str(row["variant"]), {})
        kernels = [
            _Compiled(kernel, int(own.get(_REGISTERS, 0)), own.get(_WHOLE, 0.0))
            for kernel, own in built.items()
        ]
        code = compiled_kernel(kernels, str(row["kernel"]), shape[0]) if kernels else None
        counts = built[code.kernel] if code else {}
        opcodes = {metric: count for metric, count in counts.items() if metric != _REGISTERS}
        kernel = _plain(str(row["kernel"]))
        launched[str(row["variant"])] = _Launched(
            kernel, int(kernels_of[str(row["variant"])]), shape, number(row, _EXECUTED), opcodes
        )
    return launched


def _compiled(tables: FigureTables) -> dict[str, dict[str, dict[str, float]]]:
    """Returns the registers and the instructions by opcode of each variant's compiled kernels, by name."""
    metrics = tables.metrics
    rows = metrics[metrics["metric"].str.startswith(_SASS) | (metrics["metric"] == _REGISTERS)]
    rows = rows[~rows["tool"].isin(("ncu", "nsys")) & rows["value"].notna()]
    by_variant: dict[str, dict[str, dict[str, float]]] = {}
    for row in as_rows(rows):
        own = by_variant.setdefault(str(row["variant"]), {}).setdefault(str(row["kernel"]), {})
        own[str(row["metric"])] = number(row, "value")
    return by_variant


def _plain(kernel: str) -> str:
    """Returns the name with its template arguments and parameters, but without namespaces and result."""
    return re.sub(r"(?:\(anonymous namespace\)|<unnamed>|[A-Za-z_]\w*)::", "", kernel.removeprefix("void "))
