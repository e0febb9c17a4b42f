"""Rows of the tables that the figures of traced accesses read: lanes of an example request, owners and tiles."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from msgspec import structs

from warplog.core.columns import ACCESS_LANES, ACCESS_OWNERS, ACCESS_TILES, Column, Row
from warplog.records.measured import Absent
from warplog.records.requested.accesses import AccessCase, Accesses, Instruction, Owners

TABLES: Mapping[str, Mapping[str, Column]] = {
    "access_lanes": ACCESS_LANES,
    "access_owners": ACCESS_OWNERS,
    "access_tiles": ACCESS_TILES,
}
_MOST_BYTES = 16  # of a lane; a record is input, and could claim any number
_SIDES = range(2, 1025)  # of a tile whose elements a figure can show
BY_LANE = frozenset(("load", "store", "atomic", "async_copy", "ldmatrix", "stmatrix"))  # a lane, an address
_SUMMED = ("requests", "sectors", "sectors_ideal", "wavefronts", "wavefronts_ideal")
_FACTS = (
    "launch", "offset", "opcode", "file", "line", "text", "space", "kind", "array", "requests", "sectors",
    "sectors_ideal", "wavefronts", "wavefronts_ideal", "ways",
)  # fmt: skip


def rows(record: Accesses | Absent) -> Iterator[tuple[str, Row]]:
    """Yields table and row of a variant; none if nothing was traced."""
    for case in () if isinstance(record, Absent) else record.cases:
        for table, row in _traced(case):
            yield table, {"case": case.case, **row}


def _traced(case: AccessCase) -> Iterator[tuple[str, Row]]:
    for example in _examples(case.instructions or ()):
        yield from (("access_lanes", row) for row in _lanes(example))
    if case.owners:
        yield from (("access_owners", row) for row in _threads(case.owners))
        yield from (("access_tiles", row) for row in _tiles(case.owners))


def _examples(instructions: Iterable[Instruction]) -> Iterator[Instruction]:
    """Yields of each line, kind and array the instruction with the most excess per request.

    Its counts are the sums over the instructions that take as much, as those of an unrolled loop do.
    """

    def place(own: Instruction) -> tuple[str, int, str, str, str]:
        return own.file, own.line, own.array, own.space, own.kind

    shown = (own for own in instructions if own.kind in BY_LANE and own.example.size_bytes <= _MOST_BYTES)
    for _, group in groupby(sorted(shown, key=place), place):
        having = list(group)
        worst = max(having, key=lambda own: (_excess(own), own.requests))
        same = [own for own in having if _taken(own) == _taken(worst)]
        sums = {name: sum(getattr(own, name) or 0 for own in same) for name in _SUMMED}
        yield structs.replace(
            worst, **{name: sums[name] for name in _SUMMED if getattr(worst, name) is not None}
        )


def _taken(own: Instruction) -> tuple[float, float, int]:
    """Returns the sectors or wavefronts per request, the ideal ones, and the ways."""
    shared = own.space == "shared"
    taken, ideal = (own.wavefronts, own.wavefronts_ideal) if shared else (own.sectors, own.sectors_ideal)
    return (taken or 0) / own.requests, (ideal or 0) / own.requests, own.ways or 0


def _excess(own: Instruction) -> float:
    taken, ideal, _ = _taken(own)
    return taken - ideal


def _lanes(own: Instruction) -> Iterator[Row]:
    facts: Row = {name: getattr(own, name) for name in _FACTS}
    example = own.example
    where: Row = {"block": example.block, "warp": example.warp, "size_bytes": example.size_bytes}
    for lane, address in enumerate(example.addresses):
        if address >= 0:
            yield {**facts, **where, "lane": lane, "address": address}


def _threads(owners: Owners) -> Iterator[Row]:
    """Yields the runs of a thread's elements in the first tile, cut at the ends of its rows."""
    if not owners.tiles:
        return
    first = owners.tiles[0]
    height, width = (end - begin for begin, end in (first.rows, first.columns))
    if height not in _SIDES or width not in _SIDES or height * width != sum(own for _, own in owners.threads):
        return
    place = 0
    for thread, elements in owners.threads:
        end = place + elements
        while place < end:
            row, column = divmod(place, width)
            taken = min(end - place, width - column)
            if thread >= 0:
                where: Row = {"row": first.rows[0] + row, "column": first.columns[0] + column}
                yield {
                    "array": owners.array,
                    "block": first.block,
                    "thread": thread,
                    **where,
                    "elements": taken,
                }
            place += taken


def _tiles(owners: Owners) -> Iterator[Row]:
    of_array: Row = {"array": owners.array, "rows": owners.rows, "columns": owners.columns}
    for tile in owners.tiles:
        yield {
            **of_array,
            "block": tile.block,
            "first_row": tile.rows[0],
            "end_row": tile.rows[1],
            "first_column": tile.columns[0],
            "end_column": tile.columns[1],
        }
