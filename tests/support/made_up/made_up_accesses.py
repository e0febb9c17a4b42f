"""Traces of well-known kernels, whose sectors and bank conflicts are known, and the records that follow from them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from made_up_records import LIBRARY, SOURCE, provenance
from warplog.extract.accesses import ArrayPlace, Traced, summarise
from warplog.metrics.accesses import Does, What
from warplog.parsers import access_trace
from warplog.parsers.access_trace import ENTRY, HEAD, MAGIC
from warplog.parsers.line_table import Place
from warplog.records.config import AccessSettings
from warplog.records.measured import Session
from warplog.records.requested.accesses import AccessCase, Accesses, Counted

KERNELS = Path(__file__).parents[3] / "kernels"
A, B, C = 0x7F00_0000_0000, 0x7F00_0010_0000, 0x7F00_0020_0000  # where the arrays lie
WARP, FLOAT, N = 32, 4, 64
Address = Callable[..., Any]


class Trace:
    """The trace of one kernel, and the place of each of its instructions."""

    def __init__(self, name, grid, block, blocks=None):
        self.name, self.grid, self.block = name, grid, block
        self.first, self.blocks = blocks or (0, int(np.prod(grid)))
        self.code: dict[int, Place] = {}
        self._entries: list[Any] = []
        self._threads = int(np.prod(block))

    def access(self, opcode, line, what, does, size, address: Address, offset=None):
        """Adds an instruction, or executions of the one at `offset`, by all threads of all blocks.

        `address` is called with arrays: x, y of the block and x, y of the thread; it is negative where none takes part.
        """
        offset = 16 * len(self.code) if offset is None else offset
        self.code[offset] = Place(opcode, "/src/kernel.cu" if line else "", line)
        blocks, threads = np.arange(self.first, self.first + self.blocks)[:, None], np.arange(self._threads)
        of_block = blocks % self.grid[0], blocks // self.grid[0]
        of_thread = threads % self.block[0], threads // self.block[0]
        addresses = np.broadcast_to(address(*of_block, *of_thread), (self.blocks, self._threads))
        self._add(blocks[:, 0], offset, what, does, size, addresses)
        return offset

    def request(self, block, warp, offset, what, does, size, addresses):
        """Adds one request; the address of a lane that takes no part is negative."""
        before = [-1] * (warp * WARP)
        self._add(np.array([block]), offset, what, does, size, np.array([[*before, *addresses]], np.int64))

    def _add(self, blocks, offset, what, does, size, addresses):
        """Adds requests, given the addresses by block and thread."""
        missing = -addresses.shape[1] % WARP
        by_warp = np.pad(addresses, ((0, 0), (0, missing)), constant_values=-1).reshape(-1, WARP)
        request, lane = np.nonzero(by_warp >= 0)
        warps = len(by_warp) // len(blocks)
        entries = np.zeros(len(request), ENTRY)
        entries["address"] = by_warp[request, lane]
        entries["block"], entries["thread"] = blocks[request // warps], request % warps * WARP + lane
        entries["active"] = ((by_warp >= 0) << np.arange(WARP)).sum(1)[request]
        entries["offset"], entries["size"], entries["what"] = offset, size, what | does << 4
        self._entries.append(entries)

    def entries(self):
        return np.concatenate([np.empty(0, ENTRY), *self._entries])

    def entries_of_last(self):
        """Returns the entries of the last request."""
        return self._entries[-1]

    def head(self, **changed) -> bytes:
        kept, head = len(self.entries()), np.zeros(1, HEAD)
        facts = {
            "magic": MAGIC,
            "name_bytes": len(self.name),
            "start": 0x1000,
            "code_bytes": 16 * len(self.code),
        }
        facts |= {"grid": (*self.grid, 1), "block": (*self.block, 1), "first_block": self.first}
        for name, value in {**facts, "blocks": self.blocks, "used": kept, "kept": kept, **changed}.items():
            head[name] = value
        return head.tobytes() + self.name.encode()

    def content(self, **changed) -> bytes:
        return self.head(**changed) + self.entries().tobytes()


def traced(folder: Path, kernels, arrays, file="kernel.cu", text="", wave=2) -> Traced:
    """Returns what the traces of the kernels of a launch show."""
    path = folder / "trace"
    path.write_bytes(b"".join(kernel.content() for kernel in kernels))
    code = {
        kernel.name: {at: _in_file(place, file) for at, place in kernel.code.items()} for kernel in kernels
    }
    lines = {file: {number: " ".join(line.split()) for number, line in enumerate(text.splitlines(), 1)}}
    return summarise(access_trace.read(path), arrays, code, lines, {kernel.name: wave for kernel in kernels})


def _in_file(place: Place, file: str) -> Place:
    return Place(place.opcode, f"/src/{file}" if place.line else "", place.line)


def made_up_accesses(
    folder: Path, family="transpose", variant="naive", counted=True, **changed: Any
) -> Accesses:
    """Returns the record of one of VARIANTS, in a case of 64 rows and columns.

    Args:
        folder: for the trace.
        counted: whether Nsight Compute counted the same, or was denied.
    """
    source = KERNELS / family / f"{variant}.cu"
    text = source.read_text()
    made = VARIANTS[family, variant](_Lines(text))
    arrays = ARRAYS[family]
    found = traced(folder, [made], arrays, source.name, text)
    instructions = tuple(
        structs.replace(one, ncu=_same(one) if counted else None) for one in found.instructions
    )
    denied = {"counted": "denied", "counted_reason": "the driver denies access to the counters"}
    case = AccessCase(
        case=str(N),
        status="ok",
        reason="",
        max_error_over_tolerance=0.1,
        kernels=found.kernels,
        instructions=instructions,
        owners=found.owners,
        **({"counted": "ok"} if counted else denied),
    )
    return accesses(case, family=family, variant=variant, **changed)


def accesses(*cases: AccessCase, **changed: Any) -> Accesses:
    facts = {
        "family": "scale",
        "variant": "right",
        "status": "ok",
        "reason": "",
        "origin": "live",
        "gpu": "h200",
    }
    facts |= {
        "source_sha256": SOURCE,
        "library_sha256": LIBRARY,
        "provenance": provenance(),
        "session": Session(),
    }
    return Accesses(
        **{**facts, "tracer_sha256": "c" * 64, "cases": cases, "settings": AccessSettings(), **changed}
    )


def untraced(
    family: str, variant: str, status="unsupported", reason="its kernel is a library's", **changed: Any
):
    """Returns the record of a variant that was not traced."""
    case = AccessCase(case=str(N), status=status, reason=reason)
    return accesses(case, family=family, variant=variant, status=status, reason=reason, **changed)


class _Lines:
    """Finds lines of a source."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def __call__(self, *parts: str) -> int:
        return next(i for i, line in enumerate(self._lines, 1) if all(part in line for part in parts))


def _same(one) -> Counted:
    if one.space == "shared":
        return Counted(
            requests=one.requests, wavefronts=one.wavefronts, wavefronts_ideal=one.wavefronts_ideal
        )
    return Counted(requests=one.requests, sectors=one.sectors)


def _global(base: int, row, column):
    return base + (row * N + column) * FLOAT


def _load(trace, line, size, address, offset=None):
    wide = ".128" if size == 16 else ""
    return trace.access(f"LDG.E{wide}.CONSTANT", line, What.GLOBAL, Does.READ, size, address, offset)


def _store(trace, line, size, address, offset=None):
    wide = ".128" if size == 16 else ""
    return trace.access(f"STG.E{wide}", line, What.GLOBAL, Does.WRITE, size, address, offset)


def _lds(trace, line, size, address, offset=None):
    wide = ".128" if size == 16 else ""
    return trace.access(
        f"LDS{wide}", line, What.SHARED, Does.READ, size, lambda *at: 0x400 + address(*at), offset
    )


def _sts(trace, line, size, address, offset=None):
    wide = ".128" if size == 16 else ""
    return trace.access(
        f"STS{wide}", line, What.SHARED, Does.WRITE, size, lambda *at: 0x400 + address(*at), offset
    )


_TILE, _ROWS = 32, 8


def transpose_naive(lines) -> Trace:
    made = Trace("transpose_naive", (2, 2), (_TILE, _ROWS))
    line = lines("out[")
    for i in range(0, _TILE, _ROWS):
        _load(made, line, 4, lambda bx, by, x, y, i=i: _global(A, by * _TILE + y + i, bx * _TILE + x))
        _store(made, line, 4, lambda bx, by, x, y, i=i: _global(C, bx * _TILE + x, by * _TILE + y + i))
    return made


def transpose_tiled(name: str, place: Callable[..., Any]) -> Callable[..., Trace]:
    """Returns a transposition through shared memory, where `place` is the word of row i and column j of the tile."""

    def make(lines) -> Trace:
        made = Trace(f"transpose_{name}", (2, 2), (_TILE, _ROWS))
        read, write = lines("tile[i][lane"), lines("= tile[lane]")
        for i in range(0, _TILE, _ROWS):
            _load(made, read, 4, lambda bx, by, x, y, i=i: _global(A, by * _TILE + y + i, bx * _TILE + x))
            _sts(made, read, 4, lambda bx, by, x, y, i=i: place(y + i, x) * FLOAT)
        for i in range(0, _TILE, _ROWS):
            _lds(made, write, 4, lambda bx, by, x, y, i=i: place(x, y + i) * FLOAT)
            _store(made, write, 4, lambda bx, by, x, y, i=i: _global(C, bx * _TILE + y + i, by * _TILE + x))
        return made

    return make


def transpose_vectorized(lines) -> Trace:
    """Patches of 4 x 4 floats: one block of 256 threads transposes the 64 x 64 elements, 16 bytes per access."""
    made = Trace("transpose_vectorized", (1, 1), (256, 1))
    read, put, write = lines("quad[i] = load_quad"), lines("tile[group * 4 + 0]"), lines("tile[r][group")
    for i in range(4):
        _load(made, read, 16, lambda bx, by, x, y, i=i: _global(A, x // 16 * 4 + i, x % 16 * 4))
        _sts(made, put + i, 16, lambda bx, by, x, y, i=i: ((x % 16 * 4 + i) * 16 + (x // 16 ^ x % 16)) * 16)
    for i in range(0, 64, 16):
        row = lambda x, i=i: i + x // 16  # noqa: E731
        _lds(made, write, 16, lambda bx, by, x, y, r=row: (r(x) * 16 + (x % 16 ^ r(x) // 4)) * 16)
        _store(made, write, 16, lambda bx, by, x, y, r=row: _global(C, r(x), x % 16 * 4))
    return made


def sgemm_by_element(name: str, row: Address, column: Address) -> Callable[..., Trace]:
    """Returns a product in which each thread computes an element, whose row and column it chooses."""

    def make(lines) -> Trace:
        made = Trace(f"sgemm_{name}", (2, 2), (_TILE, _TILE))
        line = lines("sum += a[k]")
        a = b = None
        for k in range(N):
            a = _load(made, line, 4, lambda *at, k=k: _global(A, row(*at), k), a)
            b = _load(made, line, 4, lambda *at, k=k: _global(B, k, column(*at)), b)
        _store(made, lines("*c = "), 4, lambda *at: _global(C, row(*at), column(*at)))
        return made

    return make


def sgemm_smem_tiled(lines) -> Trace:
    made = Trace("sgemm_smem_tiled", (2, 2), (_TILE, _TILE))
    a = b = to_a = to_b = None
    inner: dict[tuple[str, int], int] = {}
    for k0 in range(0, N, _TILE):
        a = _load(
            made, lines("a_tile[y][x]"), 4, lambda bx, by, x, y, k=k0: _global(A, by * _TILE + y, k + x), a
        )
        to_a = _sts(made, lines("a_tile[y][x]"), 4, lambda bx, by, x, y: (y * _TILE + x) * FLOAT, to_a)
        b = _load(
            made, lines("b_tile[y][x]"), 4, lambda bx, by, x, y, k=k0: _global(B, k + y, bx * _TILE + x), b
        )
        to_b = _sts(made, lines("b_tile[y][x]"), 4, lambda bx, by, x, y: 4096 + (y * _TILE + x) * FLOAT, to_b)
        for k in range(0, _TILE, 4):
            place = lambda bx, by, x, y, k=k: (y * _TILE + k) * FLOAT  # noqa: E731
            inner["a", k] = _lds(made, lines("a_tile[y][k]"), 16, place, inner.get(("a", k)))
        for k in range(_TILE):
            place = lambda bx, by, x, y, k=k: 4096 + (k * _TILE + x) * FLOAT  # noqa: E731
            inner["b", k] = _lds(made, lines("a_tile[y][k]"), 4, place, inner.get(("b", k)))
    _store(made, lines("*c = "), 4, lambda bx, by, x, y: _global(C, by * _TILE + y, bx * _TILE + x))
    return made


ARRAYS: Mapping[str, list[ArrayPlace]] = {
    "transpose": [
        ArrayPlace("in", A, (N, N), FLOAT, is_output=False),
        ArrayPlace("out", C, (N, N), FLOAT, is_output=True),
    ],
    "sgemm": [
        ArrayPlace("A", A, (N, N), FLOAT, is_output=False),
        ArrayPlace("B", B, (N, N), FLOAT, is_output=False),
        ArrayPlace("C", C, (N, N), FLOAT, is_output=True),
    ],
}
VARIANTS: Mapping[tuple[str, str], Callable[..., Trace]] = {
    ("transpose", "naive"): transpose_naive,
    ("transpose", "smem_conflict"): transpose_tiled("smem_conflict", lambda i, j: i * _TILE + j),
    ("transpose", "padded"): transpose_tiled("padded", lambda i, j: i * (_TILE + 1) + j),
    ("transpose", "xor_swizzled"): transpose_tiled("xor_swizzled", lambda i, j: i * _TILE + (i ^ j)),
    ("transpose", "vectorized"): transpose_vectorized,
    ("sgemm", "naive"): sgemm_by_element(
        "naive", lambda bx, by, x, y: bx * _TILE + x, lambda bx, by, x, y: by * _TILE + y
    ),
    ("sgemm", "gmem_coalesced"): sgemm_by_element(
        "gmem_coalesced", lambda bx, by, x, y: by * _TILE + y, lambda bx, by, x, y: bx * _TILE + x
    ),
    ("sgemm", "smem_tiled"): sgemm_smem_tiled,
}
