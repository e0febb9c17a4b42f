"""Made-up requests of well-known kernels: which addresses their lanes touch follows from the code, no machine traced them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from made_up_tables import MadeUpTables
from warplog.core.columns import ACCESS_LANES, ACCESS_OWNERS, ACCESS_TILES
from warplog.metrics import banks
from warplog.records.requested.accesses import Instruction, Owners, Request, Tile
from warplog.tables.traced import pictures
from warplog.tables.view import FigureTables

LANES = range(32)
TABLES = {"access_lanes": ACCESS_LANES, "access_owners": ACCESS_OWNERS, "access_tiles": ACCESS_TILES}


def instruction(line: int, text: str, kind: str, array: str, address: Callable[[int], int], size: int = 4, **changed) -> Instruction:
    """An instruction with 64 requests, all as the example; of shared memory if it has no array."""
    addresses = tuple(address(lane) for lane in LANES)
    used = [a for a in addresses if a >= 0]
    counts = {"sectors": None, "sectors_ideal": None, "wavefronts": None, "wavefronts_ideal": None, "ways": None}
    if array:
        sectors = {a // 32 for own in used for a in (own, own + size - 1)}
        distinct = len({own + byte for own in used for byte in range(size)})
        counts |= {"sectors": 64 * len(sectors), "sectors_ideal": 64 * -(-distinct // 32)}
    else:
        request = np.array([addresses]), np.array([addresses]) >= 0
        taken = banks.wavefronts(*request, size, matrices="matrix" in kind)
        counts |= {"wavefronts": 64 * int(taken.taken[0]), "wavefronts_ideal": 64 * int(taken.ideal[0])}
        counts["ways"] = int(taken.ways[0])
    facts = {
        "launch": 0, "offset": 16 * line, "opcode": "", "file": "kernel.cu", "line": line, "text": text,
        "space": "global" if array else "shared", "kind": kind, "array": array, "requests": 64,
        "lanes": 64 * len(used), "bytes": 64 * size * len(used), **counts,
        "example": Request(block=0, warp=0, size_bytes=size, addresses=addresses),
    }  # fmt: skip
    if "distinct_bytes" in Instruction.__struct_fields__:
        facts["distinct_bytes"] = 64 * size
    return Instruction(**{**facts, **changed})


SGEMM = {  # 64 x 64
    "naive": [
        instruction(21, "sum += A[row * K + k] * B[k * N + column];", "load", "A", lambda lane: 256 * lane),
        instruction(21, "sum += A[row * K + k] * B[k * N + column];", "load", "B", lambda lane: 0, offset=352),
        instruction(24, "C[row * N + column] = alpha * sum + beta * C[row * N + column];", "store", "C", lambda lane: 256 * lane),
    ],
    "gmem_coalesced": [
        instruction(19, "sum += A[row * K + k] * B[k * N + column];", "load", "A", lambda lane: 0),
        instruction(19, "sum += A[row * K + k] * B[k * N + column];", "load", "B", lambda lane: 4 * lane, offset=320),
        instruction(22, "C[row * N + column] = alpha * sum + beta * C[row * N + column];", "store", "C", lambda lane: 4 * lane),
    ],
}  # fmt: skip
TRANSPOSE = {
    "naive": [instruction(9, "out[x * M + y] = in[y * N + x];", "store", "out", lambda lane: 1024 * lane)],
    "smem_conflict": [
        instruction(14, "tile[threadIdx.y][threadIdx.x] = in[y * N + x];", "store", "", lambda lane: 4 * lane),
        instruction(17, "out[v * M + u] = tile[threadIdx.x][threadIdx.y];", "load", "", lambda lane: 128 * lane),
    ],
    "padded": [
        instruction(14, "tile[threadIdx.y][threadIdx.x] = in[y * N + x];", "store", "", lambda lane: 4 * lane),
        instruction(17, "out[v * M + u] = tile[threadIdx.x][threadIdx.y];", "load", "", lambda lane: 132 * lane),
    ],
    "xor_swizzled": [
        instruction(14, "tile[threadIdx.y][threadIdx.x ^ threadIdx.y] = in[y * N + x];", "store", "", lambda lane: 4 * (lane ^ 5)),
        instruction(17, "out[v * M + u] = tile[threadIdx.x][threadIdx.y ^ threadIdx.x];", "load", "", lambda lane: 128 * lane + 4 * (lane ^ 5)),
    ],
}  # fmt: skip
MATRICES = {  # of 16 x 16 halves per request, in rows of 64 bytes, then with the chunks of 16 bytes swizzled
    "mma_sync": [instruction(40, "ldmatrix_x4(a, &tile[lane % 16][8 * (lane / 16)]);", "ldmatrix", "", lambda lane: 64 * (lane % 16) + 16 * (lane // 16), 16)],
    "swizzled": [
        instruction(40, "ldmatrix_x4(a, &tile[lane % 16][8 * (lane / 16 ^ lane / 2 % 4)]);", "ldmatrix", "",
                    lambda lane: 64 * (lane % 16) + 16 * (lane // 16 ^ lane // 2 % 4), 16)
    ],
}  # fmt: skip


def owners(rows: int, columns: int, tile: tuple[int, int], thread: Callable[[int, int], int], order=None) -> Owners:
    """Who writes C: `thread` tells it of an element of a tile; `order` has the tiles as (row, column)."""
    height, width = tile
    down, across = -(-rows // height), -(-columns // width)
    places = order or [(row, column) for row in range(down) for column in range(across)]
    runs: list[list[int]] = []
    for row in range(height):
        for column in range(width):
            own = thread(row, column)
            if runs and runs[-1][0] == own:
                runs[-1][1] += 1
            else:
                runs.append([own, 1])
    tiles = tuple(
        Tile(block=n, rows=(r * height, min(rows, (r + 1) * height)), columns=(c * width, min(columns, (c + 1) * width)))
        for n, (r, c) in enumerate(places)
    )
    return Owners(array="C", rows=rows, columns=columns, tiles=tiles, threads=tuple((t, n) for t, n in runs))


def with_requests(tables: FigureTables, traced: dict[str, Sequence[Instruction]], of: dict[str, Owners] | None = None, kernels=()) -> FigureTables:
    """The tables with the traced lanes of these variants, and who writes what."""
    rows: dict[str, list[dict]] = {name: [] for name in TABLES}
    family = tables.family
    origin = tables.variants.reindex(columns=["gpu", "gpu_name", "origin", "campaign"]).iloc[0].to_dict()
    for variant, instructions in traced.items():
        for own in pictures.examples(instructions):
            rows["access_lanes"] += [{"family": family, "variant": variant, "case": "64", **origin, **row} for row in pictures.lanes(own)]
    for variant, own in (of or {}).items():
        for table, made in (("access_owners", pictures.threads(own)), ("access_tiles", pictures.tiles(own))):
            rows[table] += [{"family": family, "variant": variant, "case": "64", **origin, **row} for row in made]
    frames = {name: pd.DataFrame(own, columns=None if own else list(TABLES[name])) for name, own in rows.items()}
    return replace(tables, **frames)


def ladder(family: str, names: dict[str, str]) -> FigureTables:
    """A family with these variants and their parents, each with a time."""
    made = MadeUpTables()
    for order, (name, parent) in enumerate(names.items()):
        made.variant(family, name, order, len(names), "64", parent=parent)
        made.measured(family, name, "64", 64, 10.0, 1e6, 1e6)
    return made.tables()
