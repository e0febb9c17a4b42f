"""What the machine code of a kernel tells a model: loads in flight, arithmetic that waits for its operands, widths."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from warplog.parsers.instruction import Instruction


@dataclass(frozen=True)
class Code:
    """What the machine code of a kernel tells.

    Attributes:
        in_flight: loads of a thread from global memory that are in flight at a time, where most are executed.
        overlapped: share of the time in hot loops with a load or a copy to shared memory in flight; NaN if unknown.
        dependent: instructions, each of which needs the result of the one before, summed over warps.
        load_bytes, store_bytes: of a lane and access of global memory, on average; NaN without one.
        spill_bytes: of a lane and access of local memory, on average; NaN without one.
        adds_floats: its atomics on global memory are in floating point.
        chases: the address of a load comes from another load, where most are executed.
        stores_left: bulk stores that the mean wait for them leaves in flight; NaN without one.
        store_waits: share of the time of all warps in which one waits for bulk stores; NaN if it was not sampled.
        generic: loads and stores by generic addresses that reach shared memory, as was traced, summed over warps.
        port_conflicts: FFMAs that read their registers a cycle longer, summed over warps; NaN if unknown.
    """

    in_flight: int = 0
    overlapped: float = math.nan
    dependent: float = 0.0
    load_bytes: float = math.nan
    store_bytes: float = math.nan
    spill_bytes: float = math.nan
    adds_floats: bool = False
    chases: bool = False
    stores_left: float = math.nan
    store_waits: float = math.nan
    generic: float = 0.0
    port_conflicts: float = math.nan


UNKNOWN = Code()
_ARITHMETIC = ("ffma", "float", "half", "integer")
_BULK = ("UTMALDG", "UBLKCP")  # to shared memory, or from there
_PASSES = 3  # the first fills the registers, the others differ by what an iteration adds


def loads_in_flight(code: Sequence[Instruction], repeats: bool) -> int:
    """Returns how many loads of a thread from global memory are in flight at most.

    Args:
        code: a kernel, or a loop.
        repeats: it is a loop, whose first instructions follow its last.
    """
    walk = _walk((*code, *code) if repeats else code)
    return max((waiting + (instruction.kind == "ldg") for instruction, waiting, _ in walk), default=0)


def chases(code: Sequence[Instruction], repeats: bool) -> bool:
    """Returns whether the address of a load from global memory comes from one before, in this or the last iteration.

    Args:
        code: a kernel, or a loop.
        repeats: it is a loop, whose first instructions follow its last.
    """
    loaded: set[str] = set()
    for instruction in (*code, *code) if repeats else code:
        follows = bool(loaded & instruction.read)
        is_load = instruction.kind == "ldg"
        if is_load and follows:
            return True
        loaded -= instruction.written
        if is_load or follows:
            loaded |= instruction.written
    return False


def overlapped(code: Sequence[Instruction], executed: Sequence[float]) -> float:
    """Returns the share of executed instructions that are issued while a load or a copy to shared memory is in flight.

    Instructions stand for time. It is NaN if nothing was executed, and with bulk copies: who waits for these at an
    mbarrier, and when they were asked for, the order of instructions does not tell.

    Args:
        code: loops around each other, in the order of their addresses.
        executed: how often each instruction was executed.
    """
    if any(instruction.base in _BULK for instruction in code):
        return math.nan
    second = islice(_walk((*code, *code)), len(code), None)
    busy = sum(n for n, (_, waiting, copies) in zip(executed, second, strict=True) if waiting or copies)
    return busy / sum(executed) if sum(executed) else math.nan


def _walk(code: Iterable[Instruction]) -> Iterator[tuple[Instruction, int, int]]:
    """Yields each instruction with the loads, and the copies to shared memory, that are in flight when it is issued.

    Warps issue in order, and one stops at the first instruction that reads or writes a register of a load. Loads return
    in order, so that it then has all that it asked for until that load. Copies are waited for in groups. Branches are
    not followed.
    """
    waiting: list[frozenset[str]] = []
    groups = [0]  # copies in each group that was not waited for; the last one is not closed yet
    for instruction in code:
        needed = instruction.read | instruction.written
        behind = max((n for n, written in enumerate(waiting) if written & needed), default=-1)
        waiting = [] if instruction.base in ("EXIT", "RET") else waiting[behind + 1 :]
        groups = _groups(groups, instruction)
        yield instruction, len(waiting), sum(groups)
        if instruction.kind == "ldg":
            waiting.append(instruction.written)


def _groups(groups: list[int], instruction: Instruction) -> list[int]:
    if instruction.base == "LDGSTS":
        return [*groups[:-1], groups[-1] + 1]
    if instruction.base == "LDGDEPBAR":
        return [*groups, 0]
    left = _left(instruction)
    return groups if left is None else groups[max(0, len(groups) - 1 - left) :]


def _left(instruction: Instruction) -> int | None:
    """Returns how many groups of copies a wait leaves in flight; None if it is no wait for groups."""
    is_wait = instruction.base == "DEPBAR" and instruction.operands[:1] == ("SB0",)
    return int(instruction.operands[1], 16) if is_wait and len(instruction.operands) > 1 else None


def store_waits(
    code: Sequence[Instruction], executed: Sequence[float], samples: Sequence[float]
) -> tuple[float, float]:
    """Returns `stores_left` and `store_waits` of a kernel.

    The same instruction waits for groups of asynchronous copies to shared memory: a kernel with both is unknown.

    Args:
        code: in the order of addresses.
        executed, samples: how often each instruction was executed, and a warp seen that could not issue it or just did.
    """
    bases = {instruction.base for instruction in code}
    if "UTMACMDFLUSH" not in bases or "LDGDEPBAR" in bases:
        return math.nan, math.nan
    left = {n: of_wait for n, instruction in enumerate(code) if (of_wait := _left(instruction)) is not None}
    waits, every = sum(executed[n] for n in left), sum(samples)
    stopped = {*left, *(n + 1 for n in left)}  # the instruction behind a wait is the one that is not issued
    return (
        sum(executed[n] * of_wait for n, of_wait in left.items()) / waits if waits else math.nan,
        sum(count for n, count in enumerate(samples) if n in stopped) / every if every else math.nan,
    )


def dependent(code: Sequence[Instruction], repeats: bool) -> int:
    """Returns how many instructions follow each other at least, each of which needs the result of the one before.

    Arithmetic, comparisons and branches with a condition count; nothing starts before the branch in front of it is
    decided. In a loop it is what an iteration adds, as soon as all registers hold results of the loop.
    """
    depths: dict[str, int] = {}
    decided = 0
    longest = [0]
    for _ in range(_PASSES if repeats else 1):
        for instruction in code:
            depth = max((depths.get(name, 0) for name in instruction.read), default=0)
            depth = max(depth, decided) + (instruction.kind in _ARITHMETIC)
            if instruction.base == "BRA" and instruction.read:
                decided = depth = depth + 1
            depths |= dict.fromkeys(instruction.written, depth)
        longest.append(max(decided, *depths.values(), 0))
    return longest[-1] - longest[-2]
