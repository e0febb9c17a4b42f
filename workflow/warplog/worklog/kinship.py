"""What a variant is compared with besides its parent: a faster ancestor, and a variant with the same kernel."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warplog.analysis import verdicts
from warplog.metrics.kernels import compiled_kernel
from warplog.tables import regimes
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables

Row = Mapping[str, Any]
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
        ratio: Time of the twin over that of this variant.
        tied: Whether the two times are tied within noise.
    """

    variant: str
    same: bool
    instructions: tuple[int, int]
    registers: int
    ratio: float
    tied: bool


@dataclass(frozen=True)
class _Launched:
    """A variant's longest kernel: its name without namespaces, launch, executed instructions and machine code."""

    name: str
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
    parent = str(rows.get(name, {}).get("parent") or "")
    if not _is_faster(rows, name, parent):
        return ""
    place = parent
    while _is_faster(rows, above := str(rows[place].get("parent") or ""), place):
        place = above
    return place if place != parent else ""


def _is_faster(rows: Mapping[str, Row], name: str, other: str) -> bool:
    """Returns whether a variant is faster than another one, beyond noise."""
    pair = rows.get(name, {}), rows.get(other, {})
    if any(row.get("status") != "ok" or not row["median_us"] > 0 for row in pair):
        return False
    return bool(pair[0]["median_us"] < pair[1]["median_us"]) and not verdicts.tied(*pair)


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
    rows: dict[str, Row] = {}
    for row in as_rows(tables.ladder(tables.profiled_case)):
        rows[str(row["variant"])] = {str(column): value for column, value in row.items()}
    known: dict[str, _Launched] = {
        name: kernel
        for name, kernel in _launched(tables).items()
        if sources.get(name) and rows[name]["status"] == "ok"
    }
    found = {}
    for place, name in enumerate(known):
        parent = str(rows[name]["parent"] or "")
        others = [
            one for one in dict.fromkeys((parent, *list(known)[:place])) if one in known and one != name
        ]
        others = [one for one in others if sources[one][0] != sources[name][0]]
        each = [_twin(one, name, known, rows, sources[one][0] in sources[name]) for one in others]
        twin = min(filter(None, each), key=lambda one: not one.same, default=None)
        if twin:
            found[name] = twin
    return found


def classes(found: Mapping[str, Twin], order: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Returns, for each variant that launches the same kernel as another one, all variants that do, in ladder order.

    Args:
        found: The result of `twins`.
        order: The variants in ladder order.
    """
    roots = {}
    for name in order:
        root = name
        while root in found and found[root].same and found[root].variant not in (name, root):
            root = found[root].variant
        roots[name] = root
    alike = {name: tuple(one for one in order if roots[one] == roots[name]) for name in order}
    return {name: members for name, members in alike.items() if len(members) > 1}


def tied(name: str, other: str, rows: Mapping[str, Row], alike: Mapping[str, Sequence[str]]) -> bool:
    """Returns whether two kernels are tied within noise: each variant that launches the one with each of the other."""
    pairs = ((rows[one], rows[two]) for one in alike.get(name, (name,)) for two in alike.get(other, (other,)))
    return all(verdicts.tied(*pair) for pair in pairs)


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
    own = [name for name in rows if _us(rows[name]) > 0 and not rows[name]["is_baseline"]]
    if not own:
        return ""
    first = min(own, key=lambda name: _us(rows[name]))
    return max(alike.get(first, (first,)), key=lambda name: sum(_wins(name, own, case) for case in others))


def _wins(name: str, own: Sequence[str], rows: Mapping[str, Row]) -> bool:
    timed = [one for one in own if _us(rows.get(one, {})) > 0]
    if name not in timed:
        return False
    first = min(timed, key=lambda one: _us(rows[one]))
    return name == first or verdicts.tied(rows[name], rows[first])


def _us(row: Row) -> float:
    return regimes.value(row, "median_us") if row.get("status") == "ok" else math.nan


def _twin(
    other: str, name: str, known: Mapping[str, _Launched], rows: Mapping[str, Row], included: bool
) -> Twin | None:
    one, own = known[other], known[name]
    tied = verdicts.tied(rows[other], rows[name])
    same = _same_code(one, own) and (one.name == own.name or tied)
    if not same and not (included and one.name == own.name):
        return None
    instructions = (int(one.opcodes.get(_WHOLE, 0)), int(own.opcodes.get(_WHOLE, 0)))
    ratio = rows[other]["median_us"] / rows[name]["median_us"]
    return Twin(other, same, instructions, int(own.shape[0]), ratio, tied)


@dataclass(frozen=True)
class _Code:
    """A compiled kernel, with the number of its instructions by opcode."""

    kernel: str
    registers_per_thread: int
    sass_instructions: float
    opcodes: Mapping[str, float]


def _same_code(one: _Launched, other: _Launched) -> bool:
    alike = one.shape == other.shape and abs(one.executed - other.executed) <= _SAME * one.executed
    return alike and bool(one.opcodes) and one.opcodes == other.opcodes


def _launched(tables: FigureTables) -> dict[str, _Launched]:
    compiled = _compiled(tables)
    found = {}
    for row in as_rows(tables.counters([*_SHAPE, _EXECUTED])):
        shape = tuple(float(row[name]) for name in _SHAPE)
        if any(map(math.isnan, shape)):
            continue
        kernels = [_Code(**one) for one in compiled.get(str(row["variant"]), {}).values()]
        code = compiled_kernel(kernels, str(row["kernel"]), shape[0])
        opcodes = code.opcodes if code else {}
        found[str(row["variant"])] = _Launched(
            _plain(str(row["kernel"])), shape, float(row[_EXECUTED]), opcodes
        )
    return found


def _compiled(tables: FigureTables) -> dict[str, dict[str, dict[str, Any]]]:
    """Returns the compiled kernels of each variant, by name, with the number of their instructions by opcode."""
    metrics = tables.metrics
    rows = metrics[metrics["metric"].str.startswith(_SASS) | (metrics["metric"] == _REGISTERS)]
    rows = rows[~rows["tool"].isin(("ncu", "nsys")) & rows["value"].notna()]
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in as_rows(rows):
        kernels = found.setdefault(str(row["variant"]), {})
        own = kernels.setdefault(str(row["kernel"]), {"kernel": str(row["kernel"]), "opcodes": {}})
        if row["metric"] == _REGISTERS:
            own[_REGISTERS] = int(row["value"])
        else:
            own["opcodes"][str(row["metric"])] = float(row["value"])
    for kernels in found.values():
        for own in kernels.values():
            own["sass_instructions"] = own["opcodes"].get(_WHOLE, 0.0)
            own.setdefault(_REGISTERS, 0)
    return found


def _plain(kernel: str) -> str:
    """Returns the name with its template arguments and parameters, but without namespaces and result."""
    return re.sub(r"(?:\(anonymous namespace\)|<unnamed>|[A-Za-z_]\w*)::", "", kernel.removeprefix("void "))
