"""What a step changed in the machine code: the hot loops of parent and child, aligned and counted.

Everything here is decided by the instructions, not by their addresses and registers, which a compiler allocates anew.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from warplog.core.columns import Row, number, text
from warplog.parsers.instruction import Instruction, parse
from warplog.records.extract import MOST_INSTRUCTIONS
from warplog.tables.conclusions import SassStep

Kind = Literal["same", "changed", "new", "gone"]
Numbers = NDArray[Any]
Key = tuple[str, str, str]  # family, variant, case
_WORD_BITS = 32
_FREQUENT = 1 / 16  # share of a loop's instructions from which on one is frequent
_AS_HOT = 1 / 2
# Their modifiers make them other instructions (IMAD.MOV, IMAD.WIDE), and the kinds of their operands say little.
_BY_OPCODE = ("integer", "sync")
_LEAST_SHARE = 1 / 8  # of FFMA or DFMA in a loop whose work they are; in others they compute something aside


@dataclass(frozen=True)
class HotInstruction:
    """An instruction of a hot loop; see the table `instructions`.

    Attributes:
        executed: how often warps executed it; NaN if that is not known.
        samples: warp samples at it; 0 without samples.
    """

    code: Instruction
    executed: float = math.nan
    samples: float = 0.0
    stall: str = ""
    stall_samples: float = 0.0
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class Loop:
    """A hot loop, or the code outside of all loops if it does not iterate.

    Attributes:
        iterations: how often warps began one; NaN if that is not known.
        kernel_samples: warp samples of the whole kernel; 0 without samples.
    """

    instructions: tuple[HotInstruction, ...]
    iterates: bool = True
    iterations: float = math.nan
    kernel_samples: float = 0.0

    @property
    def samples(self) -> float:
        """Warp samples in the loop."""
        return sum(instruction.samples for instruction in self.instructions)

    @property
    def sample_share(self) -> float:
        """Share of the kernel's warp samples; NaN without samples."""
        return self.samples / self.kernel_samples if self.kernel_samples else math.nan

    @property
    def mix(self) -> dict[str, float]:
        """Share of each kind of instructions."""
        kinds = Counter(instruction.code.kind for instruction in self.instructions)
        return {kind: count / kinds.total() for kind, count in kinds.items()}

    def times(self, instruction: HotInstruction) -> float:
        """Returns how often an instruction is executed in an iteration; 1 if that is not known."""
        executions = instruction.executed / self.iterations if self.iterations else math.nan
        return 1.0 if math.isnan(executions) else executions


@dataclass(frozen=True)
class Pair:
    """Instructions of parent and child that belong together, by their places; None where there is none.

    `same`: equal but for registers, addresses and constants. `changed`: of the same opcode with other modifiers or
    kinds of operands, such as LDS and LDS.128.
    """

    kind: Kind
    before: int | None
    after: int | None


def hot_loops(rows: Iterable[Row]) -> dict[Key, list[Loop]]:
    """Returns the loops in rows of the table `instructions`, the hottest first."""
    by_kernel: dict[Key, list[Loop]] = {}
    ordered = sorted(rows, key=lambda row: (*_key(row), number(row, "loop"), number(row, "place")))
    for (key, _), group in groupby(ordered, lambda row: (_key(row), number(row, "loop"))):
        by_kernel.setdefault(key, []).append(_loop(list(islice(group, MOST_INSTRUCTIONS))))
    return by_kernel


def loop_pairs(of_parent: Sequence[Loop], own: Sequence[Loop]) -> list[tuple[Loop, Loop]]:
    """Returns the loops of parent and child that do the same: the child's hottest, and the parent's if it is another.

    Args:
        of_parent: the loops of the parent, the hottest first.
        own: those of the child.
    """
    pairs = [(_most_alike(of_parent, own[0]), own[0]), (of_parent[0], _most_alike(own, of_parent[0]))]
    (parent, child), (other_parent, other_child) = pairs
    return pairs if parent is not other_parent and child is not other_child else pairs[:1]


def _most_alike(loops: Sequence[Loop], other: Loop) -> Loop:
    """Returns the loop with the most similar mix of instructions, of those that are about as hot as the first one."""
    hot = [loop for loop in loops if loop.samples >= _AS_HOT * loops[0].samples]

    def likeness(loop: Loop) -> tuple[bool, float]:
        common = sum(min(share, other.mix.get(kind, 0.0)) for kind, share in loop.mix.items())
        return loop.iterates == other.iterates, common

    return max(hot, key=likeness)


def align(parent: Loop, child: Loop) -> tuple[Pair, ...]:
    """Returns the instructions of both loops in one order, each with its counterpart in the other loop, if it has one.

    Of all orders it is one with most pairs (longest common subsequence, by dynamic programming), where equal
    instructions count twice as much as changed ones, and others by how much they say of where code belongs: a rare LDS
    more than one of many FFMA, and those more than arithmetic on addresses.
    """
    before, after = ([instruction.code for instruction in loop.instructions] for loop in (parent, child))
    shapes, opcodes = (
        _numbered([property_of(code) for code in before], [property_of(code) for code in after])
        for property_of in (_shape, _opcode)
    )
    weights = [_weights(codes, side) for codes, side in zip((before, after), shapes, strict=True)]
    best = np.zeros((len(before) + 1, len(after) + 1), np.uint16)
    for row in range(len(before)):
        worth = np.where(shapes[1] == shapes[0][row], 2, opcodes[1] == opcodes[0][row])
        worth = worth * np.minimum(weights[1], weights[0][row])
        best[row + 1, 1:] = np.maximum.accumulate(np.maximum(best[row, 1:], best[row, :-1] + worth))
    return tuple(_pairs(best, shapes))


def _weights(codes: Sequence[Instruction], shapes: Numbers) -> Numbers:
    frequent = np.bincount(shapes)[shapes] >= _FREQUENT * len(shapes)
    return np.where([code.kind == "integer" for code in codes], 1, np.where(frequent, 2, 5))


def _pairs(best: Numbers, shapes: tuple[Numbers, Numbers]) -> Iterable[Pair]:
    """Returns the pairs behind the last cell of the table of the best scores, found from its end."""
    pairs: list[Pair] = []
    row, column = (length - 1 for length in best.shape)
    while row or column:
        if column and best[row, column] == best[row, column - 1]:
            column -= 1
            pairs.append(Pair("new", None, column))
        elif row and best[row, column] == best[row - 1, column]:
            row -= 1
            pairs.append(Pair("gone", row, None))
        else:
            row, column = row - 1, column - 1
            is_same = shapes[0][row] == shapes[1][column]
            pairs.append(Pair("same" if is_same else "changed", row, column))
    return reversed(pairs)


def bank_conflicts(loop: Loop) -> tuple[bool, ...]:
    """Returns for each instruction of a loop whether it is an FFMA that takes a cycle more to read its registers.

    From sm_70 on, registers are in two banks, even and odd ones. An instruction is delayed by a cycle if its three
    source registers are in one bank (Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking,
    2018), unless the reuse cache has one of them: an operand that is marked `.reuse` stays there for the next
    instruction, which finds the same register in the same position. Constants and uniform registers are in no bank.
    """
    delayed = []
    cached: set[tuple[int, int]] = set()
    for instruction in loop.instructions:
        read = dict(enumerate(instruction.code.sources))
        missing = {
            source for place, source in read.items() if source is not None and (place, source) not in cached
        }
        delayed.append(
            instruction.code.kind == "ffma"
            and len(missing) == 3
            and len({source % 2 for source in missing}) == 1
        )
        cached = {
            (place, source)
            for place, source in read.items()
            if source is not None and ".reuse" in instruction.code.operands[place + 1]
        }
    return tuple(delayed)


def summary(parent: Loop, child: Loop) -> Iterator[tuple[str, str, float, float]]:
    """Yields what is counted in both loops: quantity, what it is counted for, and its two values.

    See the table `sass_steps`.
    """
    counts = [_counts(loop) for loop in (parent, child)]
    quantities = sorted(
        {name for each in counts for name in each}, key=lambda name: (name != "instructions", name)
    )
    yield "sample_share", "kernel", 100 * parent.sample_share, 100 * child.sample_share
    if parent.iterates == child.iterates:
        for name in quantities:
            before, after = (each.get(name, 0.0) for each in counts)
            yield name, "iteration" if parent.iterates else "warp", before, after
    if unit := _unit(parent, child):
        work = [_work(loop, unit) for loop in (parent, child)]
        for name in quantities:
            before, after = (each.get(name, 0.0) / units for each, units in zip(counts, work, strict=True))
            if name != unit:
                yield name, unit, before, after


def rows(instructions: Iterable[Row], variants: Iterable[Row]) -> list[SassStep]:
    """Returns what each step changes in the hottest loop, case by case, from the tables of these names."""
    loops = hot_loops(instructions)
    parents = {(text(row, "family"), text(row, "variant")): text(row, "parent") for row in variants}
    return [
        SassStep(
            family,
            variant,
            parent,
            case,
            number,
            quantity,
            per,
            before,
            after,
            "%" if per == "kernel" else "",
        )
        for (family, variant, case), own in loops.items()
        for parent in [parents.get((family, variant), "")]
        if (family, parent, case) in loops
        for number, pair in enumerate(loop_pairs(loops[family, parent, case], own))
        for quantity, per, before, after in summary(*pair)
    ]


def _key(row: Row) -> Key:
    return text(row, "family"), text(row, "variant"), text(row, "case")


def _loop(rows: Sequence[Row]) -> Loop:
    first = rows[0]
    shares = ((number(row, "samples"), number(row, "sample_share")) for row in rows)
    kernel_samples = next((samples / share for samples, share in shares if share > 0), 0.0)
    return Loop(
        tuple(
            HotInstruction(
                parse(text(row, "text")),
                number(row, "executed"),
                number(row, "samples"),
                text(row, "stall"),
                number(row, "stall_samples"),
                text(row, "file"),
                int(number(row, "line")),
            )
            for row in rows
        ),
        bool(first["iterates"]),
        number(first, "iterations"),
        kernel_samples,
    )


def _numbered(before: Sequence[str], after: Sequence[str]) -> tuple[Numbers, Numbers]:
    """Returns equal numbers for equal keys."""
    numbers = {key: number for number, key in enumerate(dict.fromkeys((*before, *after)))}
    return np.array([numbers[key] for key in before]), np.array([numbers[key] for key in after])


def _shape(code: Instruction) -> str:
    return code.opcode if code.kind in _BY_OPCODE else code.shape


def _opcode(code: Instruction) -> str:
    return code.opcode if code.kind in _BY_OPCODE else code.base


def _counts(loop: Loop) -> dict[str, float]:
    """Returns how often an iteration executes instructions of each kind, and accesses of each width."""
    counts: dict[str, float] = defaultdict(float)
    for instruction, conflicts in zip(loop.instructions, bank_conflicts(loop), strict=True):
        times, code = loop.times(instruction), instruction.code
        for name in ("instructions", code.kind, *([f"{code.kind}_{code.bits}"] if code.bits else [])):
            counts[name] += times
        if code.kind == "ffma":
            counts["reuse_flags"] += times * code.reused
            counts["bank_conflicts"] += times * conflicts
    return counts


def _unit(parent: Loop, child: Loop) -> str:
    """Returns the unit of work that both loops have; "" if there is none.

    Matrix instructions are one only if both loops have those of the same shape.
    """
    sides = [Counter(instruction.code.kind for instruction in loop.instructions) for loop in (parent, child)]
    for unit in ("hgmma", "hmma"):
        shapes = [
            {instruction.code.opcode for instruction in loop.instructions if instruction.code.kind == unit}
            for loop in (parent, child)
        ]
        if any(shapes):
            return unit if shapes[0] == shapes[1] else ""
    for unit in ("double", "ffma"):
        if all(side[unit] >= _LEAST_SHARE * side.total() for side in sides):
            return unit
    return "word" if all(_work(loop, "word") for loop in (parent, child)) else ""


def _work(loop: Loop, unit: str) -> float:
    """Returns how many units of work an iteration has."""
    if unit == "word":
        bits = (
            loop.times(instruction) * instruction.code.bits
            for instruction in loop.instructions
            if instruction.code.kind in ("ldg", "ldgsts")
        )
        return sum(bits) / _WORD_BITS
    return sum(loop.times(instruction) for instruction in loop.instructions if instruction.code.kind == unit)
