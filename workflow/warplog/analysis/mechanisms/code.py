"""What the machine code of a kernel tells a model: how many loads wait for memory at a time, and how wide they are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from warplog.parsers.instruction import Instruction


@dataclass(frozen=True)
class Code:
    """What the machine code of a kernel tells.

    Attributes:
        in_flight: loads of a thread from global memory that are in flight at a time, where most are executed.
        load_bytes, store_bytes: of a lane and access of global memory, on average; NaN without one.
        multicasts: a copy goes to several blocks of a cluster.
    """

    in_flight: int = 0
    load_bytes: float = math.nan
    store_bytes: float = math.nan
    multicasts: bool = False


UNKNOWN = Code()


def loads_in_flight(code: Sequence[Instruction], repeats: bool) -> int:
    """Returns how many loads of a thread from global memory are in flight at most.

    Warps issue in order, and one stops at the first instruction that reads or writes a register of a load. Loads return
    in order, so that it then has all that it asked for until that load. Branches are not followed.

    Args:
        code: a kernel, or a loop.
        repeats: it is a loop, whose first instructions follow its last.
    """
    most = 0
    waiting: list[frozenset[int]] = []
    for instruction in (*code, *(code if repeats else ())):
        needed = instruction.registers_read | instruction.registers_written
        behind = max((n for n, written in enumerate(waiting) if written & needed), default=-1)
        waiting = [] if instruction.base in ("EXIT", "RET") else waiting[behind + 1 :]
        if instruction.kind == "ldg":
            waiting.append(instruction.registers_written)
            most = max(most, len(waiting))
    return most
