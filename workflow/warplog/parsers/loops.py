"""Finds the loops in a kernel's SASS.

A loop is a natural loop of the control flow: a branch goes back to an instruction, the head, that is on every way to
the branch. The range between the two is not enough: ptxas moves rare code, such as the poll of an mbarrier that was not
yet complete, behind the kernel's end, and the branch from there goes back without being a loop.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from warplog.parsers.instruction import Instruction, parse

_MOST_WAITING = 32  # instructions
_MOST_BLOCKS = 2_000  # of straight code in a kernel; those that ship have up to 200 branches
_POLLS = ("SYNCS.PHASECHK", "NANOSLEEP", "USETMAXREG", "ELECT")
_ONCE_A_THREAD = "BRA.U.ANY"  # repeats an instruction for each active thread that wants something else of it


@dataclass(frozen=True)
class Region:
    """Instructions that are executed together.

    Attributes:
        places: their indices in the code, ascending; instructions of a loop within this one are not among them.
        head: index of the instruction with which an iteration begins, or the kernel.
        iterates: False for the code outside of all loops.
    """

    places: tuple[int, ...]
    head: int
    iterates: bool


def regions(code: Sequence[tuple[int, str]]) -> list[Region]:
    """Returns the loops of a kernel, and the code outside of them, by the position of their heads.

    Each instruction belongs to the innermost loop around it. Loops that only wait, or that repeat an instruction for
    the threads of a warp, belong to what is around them. Code that cannot be reached, such as padding, is left out.
    A kernel of more than 2000 blocks has none.

    Args:
        code: address and text of every instruction, in order of their addresses.
    """
    parsed = [parse(text) for _, text in code]
    index = {address: place for place, (address, _) in enumerate(code)}
    targets = {
        place: index[instruction.target]
        for place, instruction in enumerate(parsed)
        if instruction.target in index
    }
    starts = sorted(
        {
            0,
            *targets.values(),
            *(place + 1 for place, instruction in enumerate(parsed) if _ends_block(instruction)),
        }
    )
    blocks = [
        range(*ends) for ends in pairwise([place for place in starts if place < len(code)] + [len(code)])
    ]
    if len(blocks) > _MOST_BLOCKS:
        return []
    number = {block.start: i for i, block in enumerate(blocks)}
    after = [_after(block, parsed, targets, number) for block in blocks]
    loops = {
        head: body
        for head, body in _loops(after).items()
        if not _only_waits([parsed[place] for block in sorted(body) for place in blocks[block]])
    }
    whole = Region(_places(_reached(after), loops.values(), blocks), 0, iterates=False)
    inner = (
        Region(
            _places(body, [loops[other] for other in body & loops.keys() if other != head], blocks),
            blocks[head].start,
            iterates=True,
        )
        for head, body in sorted(loops.items())
    )
    return [region for region in (whole, *inner) if region.places]


def _ends_block(instruction: Instruction) -> bool:
    return instruction.target is not None or not instruction.goes_on


def _after(
    block: range, code: Sequence[Instruction], targets: Mapping[int, int], number: Mapping[int, int]
) -> list[int]:
    """Returns the blocks that can follow a block."""
    next_places = [targets[block[-1]]] if block[-1] in targets else []
    next_places += [block.stop] if code[block[-1]].goes_on and block.stop < len(code) else []
    return [number[place] for place in next_places]


def _loops(after: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    """Returns the blocks of each natural loop by its head."""
    dominators, before = _dominators(after), _before(after)
    loops: dict[int, set[int]] = {}
    for block, following in enumerate(after):
        for head in following:
            if dominators[block] >> head & 1:
                body, left = loops.setdefault(head, {head}), [block]
                while left:
                    if (inner := left.pop()) not in body:
                        body.add(inner)
                        left += before[inner]
    return loops


def _reached(after: Sequence[Sequence[int]]) -> set[int]:
    reached: set[int] = set()
    left = [0] if after else []
    while left:
        if (block := left.pop()) not in reached:
            reached.add(block)
            left += after[block]
    return reached


def _before(after: Sequence[Sequence[int]]) -> dict[int, list[int]]:
    """Returns the blocks that can lead to each block, without those that cannot be reached themselves."""
    before: dict[int, list[int]] = defaultdict(list)
    for block in sorted(_reached(after)):
        for following in after[block]:
            before[following].append(block)
    return before


def _dominators(after: Sequence[Sequence[int]]) -> list[int]:
    """Returns for each block, as bits, the blocks on every way to it, itself included; 0 if there is no way."""
    before, reached = _before(after), _reached(after)
    every = (1 << len(after)) - 1
    dominators = [every if block in reached else 0 for block in range(len(after))]
    changed = bool(after)
    while changed:
        changed = False
        for block in sorted(reached):
            common = every if block else 0
            for earlier in before[block] if block else ():
                common &= dominators[earlier]
            changed |= dominators[block] != common | 1 << block
            dominators[block] = common | 1 << block
    return dominators


def _places(blocks: set[int], without: Iterable[set[int]], all_blocks: Sequence[range]) -> tuple[int, ...]:
    left = blocks.difference(*without)
    return tuple(place for block in sorted(left) for place in all_blocks[block])


def _only_waits(body: Sequence[Instruction]) -> bool:
    """Whether a loop does no work of its own: it polls, or repeats an instruction for each of several threads."""
    if len(body) > _MOST_WAITING:
        return False
    polls = any(instruction.opcode.startswith(_POLLS) or _is_poll(instruction) for instruction in body)
    works = any(
        instruction.kind not in ("integer", "sync", "other") and not _is_poll(instruction)
        for instruction in body
    )
    return body[-1].opcode == _ONCE_A_THREAD or (polls and not works)


def _is_poll(instruction: Instruction) -> bool:
    """Whether an instruction loads what another block may change at any time."""
    return instruction.kind in ("ldg", "generic") and ".STRONG" in instruction.opcode
