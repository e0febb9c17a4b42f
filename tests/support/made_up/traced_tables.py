"""Tables of made-up traces: of shipped kernels, of a multiplication with ldmatrix, and of blocks in any order."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pandas as pd

from made_up_accesses import accesses, made_up_accesses
from made_up_records import SOURCE
from made_up_tables import MadeUpTables, write
from warplog.analysis import traced as analysis
from warplog.metrics import banks
from warplog.records.requested.accesses import (
    AccessCase,
    Accesses,
    Instruction,
    Kernel,
    Owners,
    Request,
    Reuse,
    Tile,
)
from warplog.tables import conclusions
from warplog.tables.conclusions import Traced
from warplog.tables.files import write_parquet
from warplog.tables.traced import accesses as listed
from warplog.tables.traced import pictures
from warplog.tables.view import FigureTables

TRANSPOSE = {
    "naive": "", "smem_conflict": "naive", "padded": "smem_conflict", "xor_swizzled": "smem_conflict",
    "vectorized": "padded",
}  # fmt: skip
SGEMM = {"naive": "", "gmem_coalesced": "naive", "smem_tiled": "gmem_coalesced"}
TABLES = {**listed.TABLES, **pictures.TABLES}
WRITTEN = {**TABLES, "traced": conclusions.columns(Traced)}


def traced(
    family: str, parents: Mapping[str, str], records: Mapping[str, Accesses], source: str = SOURCE
) -> FigureTables:
    """The tables of a family whose variants have these parents, these records, and a source with this hash."""
    made = MadeUpTables()
    for order, (name, parent) in enumerate(parents.items()):
        made.variant(family, name, order, len(parents), "64", parent=parent, source_sha256=source)
        made.measured(family, name, "64", 64, 10.0, 1e6, 1e6)
    rows: dict[str, list[dict]] = {table: [] for table in TABLES}
    for variant, record in records.items():
        for table, row in (*listed.rows(record), *pictures.rows(record)):
            rows[table].append({"family": family, "variant": variant, **made.mark, **row})
    frames = {name: pd.DataFrame(own, columns=list(TABLES[name])) for name, own in rows.items()}
    tables = replace(made.tables(), **frames)
    shown = [conclusions.cells(row) for row in analysis.traces(tables).variants]
    return replace(tables, traced=pd.DataFrame(shown, columns=list(conclusions.columns(Traced))))


def shipped(folder, family: str, parents: Mapping[str, str], source: str = SOURCE) -> FigureTables:
    """The tables of kernels that this package ships."""
    records = {name: made_up_accesses(folder, family, name) for name in parents}
    return traced(family, parents, records, source)


def write_traced(tables: FigureTables, folder: Path) -> None:
    """Writes the tables, those of traces too, as the workflow does."""
    write(tables, folder)
    for name, columns in WRITTEN.items():
        rows = getattr(tables, name).astype(object)
        write_parquet(rows.where(rows.notna(), None).to_dict("records"), columns, folder / name)


def record(
    instructions: Sequence[Instruction] = (),
    owners: Owners | None = None,
    untraced=(),
    reuse: Reuse | None = None,
) -> Accesses:
    """A record of one kernel of 256 threads; without instructions it has one that costs as much in every kernel."""
    instructions = instructions or [ldmatrix(lambda lane: 16 * lane, line=1)]
    blocks = len(owners.tiles) if owners else 1
    kernel = Kernel(
        launch=0, kernel="multiply", mangled="multiply", grid=(blocks, 1, 1), block=(256, 1, 1), traced_blocks=blocks,
        entries=32, lost=0, untraced=untraced, reuse=reuse,
    )  # fmt: skip
    case = AccessCase(
        case="64", status="ok", reason="", max_error_over_tolerance=0.1, kernels=(kernel,),
        instructions=tuple(instructions), owners=owners, counted="missing",
    )  # fmt: skip
    return accesses(case)


def ldmatrix(address: Callable[[int], int], line: int = 40) -> Instruction:
    """64 requests of four matrices, whose rows lie at these addresses."""
    addresses = tuple(address(lane) for lane in range(32))
    taken, ideal, ways = banks.wavefronts(np.array([addresses]), np.ones((1, 32), bool), 16, matrices=True)
    return Instruction(
        launch=0, offset=16 * line, opcode="LDSM.16.M88.4", file="multiply.cu", line=line, text="load(a, &tile[row]);",
        space="shared", kind="ldmatrix", array="", requests=64, lanes=64 * 32, bytes=64 * 512, distinct_bytes=64 * 512,
        wavefronts=64 * int(taken[0]), wavefronts_ideal=64 * int(ideal[0]), ways=int(ways[0]),
        example=Request(block=0, warp=0, size_bytes=16, addresses=addresses),
    )  # fmt: skip


def owners(
    extent: tuple[int, int],
    tile: tuple[int, int],
    thread: Callable[[int, int], int],
    order: Iterable[tuple[int, int]] = (),
) -> Owners:
    """Who writes C: `thread` tells it of an element of a tile, and `order` the row and column of each block's tile."""
    places = list(order) or [divmod(n, extent[1] // tile[1]) for n in range(prod(extent) // prod(tile))]
    return Owners(
        array="C", rows=extent[0], columns=extent[1],
        tiles=tuple(
            Tile(block=block, rows=(top, top + tile[0]), columns=(left, left + tile[1]))
            for block, (top, left) in enumerate((row * tile[0], column * tile[1]) for row, column in places)
        ),
        threads=tuple((thread(row, column), 1) for row in range(tile[0]) for column in range(tile[1])),
    )  # fmt: skip
