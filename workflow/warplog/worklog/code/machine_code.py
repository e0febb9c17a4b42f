"""The machine code of a step as pages show it: a variant's hottest loop beside its counterpart in the parent."""

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Literal

from warplog.analysis.sass_steps import (
    HotInstruction,
    Loop,
    Pair,
    align,
    bank_conflicts,
    hot_loops,
    loop_pairs,
)
from warplog.tables import conclusions
from warplog.tables.conclusions import SassStep
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables
from warplog.worklog.cells import Cells

_HOT = 0.01  # share of the kernel's samples from which on an instruction is never folded
_SHORTEST_RUN, _SHORTEST_STRETCH = 3, 6
_MOST_UNFOLDED = 150  # lines; beyond that, other cold instructions are folded, too
_MOST_LINES = 400
_NAMED = 4  # opcodes of folded instructions
_WIDE = re.compile(r"(\.(?:64|128|MT?88\.[24])\b)")
_REUSE = re.compile(r"(\.reuse)")


@dataclass(frozen=True)
class Side:
    """An instruction, or several that are folded, in one of the loops.

    Attributes:
        pieces: CSS class and text of each part: `wide`, the width of an access; `reuse`; `bank`, a conflict; or "".
        share: share of the kernel's warp samples; NaN without samples.
        place: file and line of the source; "" if unknown.
    """

    pieces: tuple[tuple[str, str], ...]
    share: float
    stall: str
    place: str


@dataclass(frozen=True)
class Line:
    """What the loops have at a place; if its kind is `other`, the parent's side is gone and the variant's is new."""

    kind: Literal["same", "changed", "other"]
    before: Side | None
    after: Side | None


@dataclass(frozen=True)
class MachineCode:
    """A hot loop of a variant and its counterpart in the parent.

    Attributes:
        largest: the largest share of samples of a line; 1 without samples.
        quantities: rows of the table `sass_steps` that differ: per unit of work if there is one, else per iteration.
        iterates: whether that of the parent and that of the variant are loops, or the code outside of all loops.
        left_out: number of lines beyond those that are shown.
    """

    parent: str
    variant: str
    lines: tuple[Line, ...]
    largest: float
    quantities: tuple[Cells, ...]
    iterates: tuple[bool, bool]
    left_out: int


def by_variant(tables: FigureTables) -> dict[str, list[MachineCode]]:
    """Returns the machine code of each step of a family at the case whose counters are shown, by variant.

    A step has one or two pairs of loops; see `sass_steps.loop_pairs`.
    """
    loops = hot_loops(as_rows(tables.instructions))
    rows = [row for row in conclusions.rows(tables.sass_steps, SassStep) if row.case == tables.profiled_case]
    listings: dict[str, list[MachineCode]] = {}
    for variant, of_variant in conclusions.by_variant(rows).items():
        names = (of_variant[0].parent, variant)
        pairs = loop_pairs(*(loops[tables.family, name, tables.profiled_case] for name in names))
        listings[variant] = [
            machine_code([row for row in of_variant if row.loop == number], *pair)
            for number, pair in enumerate(pairs)
        ]
    return listings


def machine_code(rows: Sequence[SassStep], before: Loop, after: Loop) -> MachineCode:
    """Returns two loops as they are shown.

    Runs of one opcode are folded, and in long loops other instructions, unless they are hot, changed or in conflict.

    Args:
        rows: those of the table `sass_steps` on the two loops.
        before: the parent's loop.
        after: the variant's loop.
    """
    sides = (_Listing(before), _Listing(after))

    def unless_hot(pair: Pair, key: Hashable) -> Hashable:
        is_hot = any(side.is_hot(place) for side, place in zip(sides, _places(pair), strict=True))
        return pair if is_hot or pair.kind == "changed" else key

    def opcodes(pair: Pair) -> Hashable:
        opcodes = (side.opcode(place) for side, place in zip(sides, _places(pair), strict=True))
        return unless_hot(pair, (pair.kind, *opcodes))

    groups = _folded([(pair,) for pair in align(before, after)], opcodes, _SHORTEST_RUN)
    if len(groups) > _MOST_UNFOLDED:
        groups = _folded(groups, lambda pair: unless_hot(pair, pair.kind), _SHORTEST_STRETCH)
    lines = list(_lines(groups, sides))
    shares = [side.share for line in lines for side in (line.before, line.after) if side and side.share > 0]
    units = [row for row in rows if row.per not in ("kernel", "iteration", "warp")]
    return MachineCode(
        rows[0].parent,
        rows[0].variant,
        tuple(lines[:_MOST_LINES]),
        max(shares, default=1.0),
        tuple(
            Cells("sass_steps", row) for row in (*rows[:1], *(units or rows[1:])) if row.before != row.after
        ),
        (before.iterates, after.iterates),
        max(len(lines) - _MOST_LINES, 0),
    )


class _Listing:
    """One of the loops, of which instructions are shown by their places."""

    def __init__(self, loop: Loop) -> None:
        self._loop, self._conflicts = loop, bank_conflicts(loop)

    def opcode(self, place: int | None) -> str:
        return "" if place is None else self._loop.instructions[place].code.opcode

    def is_hot(self, place: int | None) -> bool:
        return place is not None and (self._conflicts[place] or self._share([place]) >= _HOT)

    def side(self, among: Iterable[int | None]) -> Side | None:
        """Returns what is shown of these instructions; None for none."""
        places = [place for place in among if place is not None]
        if not places:
            return None
        shown = [self._loop.instructions[place] for place in places]
        stalls: Counter[str] = Counter()
        for instruction in shown:
            stalls[instruction.stall if instruction.stall_samples else ""] += int(instruction.stall_samples)
        first = shown[0]
        pieces = self._pieces(places[0]) if len(places) == 1 else _counted(shown)
        place = f"{first.file}:{first.line}" if first.line else ""
        return Side(tuple(pieces), self._share(places), max(stalls, key=stalls.__getitem__), place)

    def _share(self, places: Iterable[int]) -> float:
        samples = sum(self._loop.instructions[place].samples for place in places)
        return samples / self._loop.kernel_samples if self._loop.kernel_samples else math.nan

    def _pieces(self, place: int) -> Iterator[tuple[str, str]]:
        code = self._loop.instructions[place].code
        yield "", f"{code.predicate} " if code.predicate else ""
        for piece in _WIDE.split(code.opcode):
            yield "wide" if code.bits and _WIDE.fullmatch(piece) else "", piece
        for piece in _REUSE.split(f" {', '.join(code.operands)}".rstrip()):
            yield "reuse" if piece == ".reuse" else "", piece
        if self._conflicts[place]:
            yield "bank", "bank conflict"


def _places(pair: Pair) -> tuple[int | None, int | None]:
    return pair.before, pair.after


def _counted(shown: Iterable[HotInstruction]) -> Iterator[tuple[str, str]]:
    """Yields the opcodes of folded instructions with their numbers, the most frequent first."""
    counts = Counter(instruction.code.opcode for instruction in shown)
    named = counts.most_common(_NAMED)
    others = counts.total() - sum(count for _, count in named)
    yield (
        "folded",
        ", ".join([f"{count} × {opcode}" for opcode, count in named] + [f"{others} others"] * bool(others)),
    )


def _folded(
    groups: Sequence[Sequence[Pair]], key: Callable[[Pair], Hashable], shortest: int
) -> list[Sequence[Pair]]:
    """Joins neighbouring groups whose first pairs have equal keys, if there are as many as `shortest`."""
    folded: list[Sequence[Pair]] = []
    for _, together in groupby(groups, lambda group: key(group[0])):
        neighbours = list(together)
        joined = [pair for group in neighbours for pair in group]
        folded += [joined] if len(neighbours) >= shortest else neighbours
    return folded


def _lines(groups: Iterable[Sequence[Pair]], sides: tuple[_Listing, _Listing]) -> Iterator[Line]:
    """Yields a line per group; what is gone and what is new in its place stand side by side."""
    for kind, together in groupby(groups, lambda group: _kind(group[0])):
        shown = [_sides(group, sides) for group in together]
        if kind == "other":
            gone, new = ([both[i] for both in shown if both[i]] for i in (0, 1))
            yield from (Line(kind, before, after) for before, after in zip_longest(gone, new))
        else:
            yield from (Line(kind, before, after) for before, after in shown)


def _kind(pair: Pair) -> Literal["same", "changed", "other"]:
    return pair.kind if pair.kind == "same" or pair.kind == "changed" else "other"


def _sides(group: Sequence[Pair], sides: tuple[_Listing, _Listing]) -> tuple[Side | None, Side | None]:
    before, after = zip(*map(_places, group), strict=True)
    return sides[0].side(before), sides[1].side(after)
