"""Turns the trace of a launch into the values of its record, with the counters that Nsight Compute has of it."""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePath

from msgspec import structs

from warplog.core.errors import WarplogError
from warplog.core.files import read_bytes, temporary_folder
from warplog.core.process import explain_exit, minimal_env, run
from warplog.extract import sessions
from warplog.extract.hot_lines import source_lines
from warplog.extract.trace import CASE
from warplog.machine import toolchain
from warplog.metrics.accesses import Counter, Tally
from warplog.metrics.contention import Contention, ContentionCounter
from warplog.metrics.owners import Matrix, OwnerFinder
from warplog.metrics.reuse import ReuseCounter
from warplog.parsers import line_table
from warplog.parsers.access_trace import TracedKernel
from warplog.parsers.instruction import parse
from warplog.parsers.line_table import Place
from warplog.parsers.ncu.source import SourceInstruction
from warplog.parsers.ptxas import demangle
from warplog.records.requested.accesses import (
    LINE,
    MOST_INSTRUCTIONS,
    MOST_RUNS,
    MOST_TILES,
    Counted,
    Instruction,
    Kernel,
    Owners,
    Request,
    Tile,
)

_DISASSEMBLE_S, _MOST_CUBIN = 120.0, 1 << 30
# Instructions that access memory and that the Sanitizer API has no kind for.
_UNSEEN = {
    *("UTMALDG", "UTMASTG", "UTMAREDG", "TEX", "TLD", "TLD4", "TXD"),
    *("SULD", "SUST", "SUATOM", "SURED"),
    *("LDTM", "STTM", "UTCCP", "UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA"),
}
_MERGING = "POPC.INC"  # adds up the lanes with the same address before it accesses memory
_NO_PLACE = Place("", "", 0)


@dataclass(frozen=True)
class ArrayPlace:
    """An array argument of the launch; `is_output`: whether it is to be written."""

    name: str
    address: int
    shape: tuple[int, ...]
    itemsize: int
    is_output: bool

    @property
    def addresses(self) -> range:
        """Where it lies."""
        return range(self.address, self.address + math.prod(self.shape) * self.itemsize)


@dataclass(frozen=True)
class Traced:
    """What the trace of a launch shows: values of `AccessCase`."""

    kernels: tuple[Kernel, ...]
    instructions: tuple[Instruction, ...]
    owners: Owners | None


def read(
    kernels: Sequence[TracedKernel],
    arrays: Sequence[ArrayPlace],
    cubins: Sequence[Path],
    sources: Sequence[Path],
    wave_blocks: Mapping[str, int],
) -> Traced:
    """Returns what a trace shows.

    Args:
        kernels: those of the trace.
        arrays: the arguments of the launch.
        cubins: the code that ran; without it, opcodes and lines are unknown.
        sources: the source files, for the text of the lines.
        wave_blocks: how many blocks of a kernel, by mangled name, are on the GPU at once.

    Raises:
        WarplogError: The trace is damaged, or has more instructions than a record.
    """
    lines = {path.name: source_lines(path) for path in sources}
    code = _code(cubins, {kernel.mangled for kernel in kernels})
    return summarise(kernels, arrays, code, lines, wave_blocks)


def summarise(
    kernels: Sequence[TracedKernel],
    arrays: Sequence[ArrayPlace],
    code: Mapping[str, Mapping[int, Place]],
    lines: Mapping[str, Mapping[int, str]],
    wave_blocks: Mapping[str, int],
) -> Traced:
    """Returns the same as `read`, given the instructions by kernel, and the lines by file."""
    outputs = [array for array in arrays if array.is_output and len(array.shape) == 2 and array.addresses]
    names = demangle(tuple(kernel.mangled for kernel in kernels))
    entries: list[Kernel] = []
    instructions: list[Instruction] = []
    owners: dict[str, Owners] = {}
    for launch, (kernel, name) in enumerate(zip(kernels, names, strict=True)):
        places = code.get(kernel.mangled, {})
        merging = [offset for offset, place in places.items() if _MERGING in place.opcode]
        counter = Counter([array.addresses for array in arrays], merging)
        reuse, atomics = ReuseCounter(kernel.first_block, kernel.blocks), ContentionCounter()
        finders = {array.name: OwnerFinder(_matrix(array)) for array in outputs}
        for requests in kernel.requests():
            counter.add(requests)
            if len(counter) + len(instructions) > MOST_INSTRUCTIONS:
                raise WarplogError(f"{kernel.path}: more than {MOST_INSTRUCTIONS} instructions access memory")
            reuse.add(requests)
            atomics.add(requests)
            for finder in finders.values():
                finder.add(requests)
        own = [(tally, places.get(tally.offset, _NO_PLACE)) for tally in counter.tallies()]
        contended = atomics.by_instruction()
        instructions += [
            _instruction(launch, tally, place, arrays, lines, contended.get((tally.offset, tally.what.space)))
            for tally, place in own
        ]
        entries.append(
            Kernel(
                launch=launch,
                kernel=name,
                mangled=kernel.mangled,
                grid=kernel.grid,
                block=kernel.block,
                traced_blocks=kernel.blocks,
                entries=kernel.kept,
                lost=kernel.lost,
                untraced=_untraced(places, {tally.offset for tally, _ in own}),
                same_address=atomics.of_kernel(),
                reuse=reuse.reuse(wave_blocks.get(kernel.mangled, 0)),
            )
        )
        written = {name: _owners(name, finder) for name, finder in finders.items()}
        owners |= {name: of for name, of in written.items() if of}
    return Traced(tuple(entries), tuple(instructions), next(iter(owners.values()), None))


def with_counters(
    instructions: Sequence[Instruction], report: Path, variant: str, case: str
) -> tuple[Instruction, ...]:
    """Returns the instructions with what Nsight Compute counted in the same launch.

    Args:
        instructions: those of the trace.
        report: the report of a family; the kernels of the variant's case are those of the trace, in the same order.
        variant, case: which ones.

    Raises:
        WarplogError: The report cannot be read, or is of other code.
    """
    launches = [one.code for one in sessions.ncu(report, variant).launches if f"{CASE}{case}" in one.ranges]
    counted: list[Instruction] = []
    for launch, group in groupby(instructions, key=lambda one: one.launch):
        if launch >= len(launches):
            raise WarplogError(
                f"{report}: has {len(launches)} of at least {launch + 1} kernels; profile again"
            )
        code = {one.offset: one for one in launches[launch]}
        counted += [structs.replace(one, ncu=_counted(one, code.get(one.offset), report)) for one in group]
    return tuple(counted)


def _counted(traced: Instruction, counted: SourceInstruction | None, report: Path) -> Counted | None:
    if counted is None:
        return None
    opcode = parse(counted.text).opcode
    if traced.opcode and opcode != traced.opcode:
        raise WarplogError(
            f"{report}: kernel {traced.launch} has {opcode} at {traced.offset:#x}, the trace {traced.opcode};"
            " trace and profile the same build"
        )
    number = {name: round(value) for name, value in counted.counts.items()}
    requests, lanes = number.get("instructions"), number.get("lanes")
    if traced.space != "shared":
        return Counted(
            requests=requests,
            lanes=lanes,
            lines=number.get(f"{traced.space}_lines"),
            sectors=number.get(f"{traced.space}_sectors"),
        )
    return Counted(
        requests=requests,
        lanes=lanes,
        wavefronts=number.get("shared_wavefronts"),
        wavefronts_ideal=number.get("shared_wavefronts_ideal"),
    )


def _code(cubins: Sequence[Path], names: Set[str]) -> dict[str, Mapping[int, Place]]:
    """Returns the instructions of the kernels of these names in cubins."""
    nvdisasm = toolchain.find("nvdisasm")
    code: dict[str, Mapping[int, Place]] = {}
    with temporary_folder() as folder:
        log = folder / "listing"
        for cubin in cubins:
            try:
                indices = line_table.functions(read_bytes(cubin, _MOST_CUBIN, "trace fewer kernels"), names)
            except ValueError as error:
                raise WarplogError(f"{cubin}: is damaged ({error}); trace again") from None
            if not indices:
                continue
            if nvdisasm.path is None:
                raise WarplogError(f"nvdisasm: not found; {nvdisasm.remedy}")
            command = [str(nvdisasm.path), "-c", "-g", "-fun", ",".join(map(str, indices)), str(cubin)]
            done = run(command, timeout_s=_DISASSEMBLE_S, env=minimal_env(), log=log)
            if not done.ok:
                raise WarplogError(
                    f"nvdisasm failed ({explain_exit(done)}): {done.output_tail[-300:].strip()}"
                )
            code |= line_table.parse(log.read_text(errors="replace"))
    return code


def _untraced(places: Mapping[int, Place], seen: set[int]) -> tuple[tuple[str, int], ...]:
    """Returns the opcodes that access memory without an entry in the trace because it has no kind for them."""
    opcodes = sorted(
        place.opcode
        for offset, place in places.items()
        if place.opcode.partition(".")[0] in _UNSEEN and offset not in seen
    )
    return tuple((opcode, len(list(group))) for opcode, group in groupby(opcodes))


def _instruction(
    launch: int,
    tally: Tally,
    place: Place,
    arrays: Sequence[ArrayPlace],
    lines: Mapping[str, Mapping[int, str]],
    contention: Contention | None,
) -> Instruction:
    space, shared = tally.what.space, tally.what.space == "shared"
    array = arrays[tally.array] if space == "global" and tally.array is not None else None
    file = PurePath(place.file).name
    banks = tally.ways > 0
    return Instruction(
        launch=launch,
        offset=tally.offset,
        opcode=place.opcode,
        file=file,
        line=place.line,
        text=lines.get(file, {}).get(place.line, ""),
        space=space,
        kind=tally.kind,
        array=array.name if array else "",
        requests=tally.requests,
        lanes=tally.lanes,
        bytes=tally.bytes,
        distinct_bytes=tally.distinct_bytes,
        lines=tally.lines if space == "global" else None,
        sectors=None if shared else tally.sectors,
        sectors_ideal=None if shared else tally.sectors_ideal,
        wavefronts=tally.wavefronts if banks else None,
        wavefronts_ideal=tally.wavefronts_ideal if banks else None,
        ways=tally.ways if banks else None,
        same_address=contention.operations if contention else None,
        same_address_lanes=contention.lanes if contention else None,
        example=_relative(tally.example, array) if space == "global" else tally.example,
    )


def _relative(example: Request, array: ArrayPlace | None) -> Request:
    """Returns a request with addresses from the start of the array, or of the first cache line if there is none."""
    first = min(address for address in example.addresses if address >= 0)
    base = array.address if array else first // LINE * LINE
    addresses = tuple(address - base if address >= 0 else -1 for address in example.addresses)
    return structs.replace(example, addresses=addresses)


def _matrix(array: ArrayPlace) -> Matrix:
    rows, columns = array.shape
    return Matrix(array.address, rows, columns, array.itemsize)


def _owners(array: str, finder: OwnerFinder) -> Owners | None:
    if (written := finder.owners()) is None:
        return None
    runs = [(thread, len(list(group))) for thread, group in groupby(written.threads.reshape(-1).tolist())]
    tiles = zip(written.blocks[:MOST_TILES], written.boxes, strict=False)
    return Owners(
        array=array,
        rows=finder.matrix.rows,
        columns=finder.matrix.columns,
        tiles=tuple(
            Tile(block=block, rows=(top, bottom), columns=(left, right))
            for block, (top, bottom, left, right) in tiles
        ),
        threads=tuple(runs) if len(runs) <= MOST_RUNS else (),
    )
