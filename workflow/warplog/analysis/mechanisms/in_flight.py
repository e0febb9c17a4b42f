"""How many loads of a thread are in flight at a time, from machine code."""

from collections.abc import Sequence
from dataclasses import dataclass

from warplog.parsers.instruction import Instruction


@dataclass(frozen=True)
class InFlight:
    """The most loads from global memory of a thread, and their bytes, that are in flight at a time; 0 without loads."""

    loads: int = 0
    bytes: int = 0


def in_flight(code: Sequence[Instruction], repeats: bool) -> InFlight:
    """Returns what is in flight at most, walking over instructions in their order.

    Warps issue in order, and one stops at the first instruction that reads or writes a register of a load. Loads return
    in order, so that it then has all that it asked for until that load. Branches are not followed.

    Args:
        code: a kernel, or a loop.
        repeats: it is a loop, whose first instructions follow its last.
    """
    most = InFlight()
    waiting: list[tuple[frozenset[int], int]] = []
    for instruction in (*code, *(code if repeats else ())):
        needed = instruction.registers_read | instruction.registers_written
        behind = max((n for n, (written, _) in enumerate(waiting) if written & needed), default=-1)
        waiting = [] if instruction.base in ("EXIT", "RET") else waiting[behind + 1 :]
        if instruction.kind == "ldg" and instruction.registers_written:
            waiting.append((instruction.registers_written, instruction.bits // 8))
            total = sum(size for _, size in waiting)
            most = InFlight(max(most.loads, len(waiting)), max(most.bytes, total))
    return most
