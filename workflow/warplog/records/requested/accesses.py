"""Record of stage accesses: which addresses each memory instruction of a variant touched in one launch.

The addresses come from a trace of every lane, not from hardware counters; where counters were allowed as well, the same
launch was counted by Nsight Compute, instruction by instruction, and both are kept.
"""

from typing import Annotated, Literal

from msgspec import Meta

from warplog.records.config import AccessSettings
from warplog.records.fields import Count, Frozen, Number, Sha256, Status, Text
from warplog.records.measured import Case, Measured, Session, only_if_ok

WARP = 32  # lanes
SECTOR, LINE = 32, 128  # bytes of what L1 and L2 exchange, and of a line of both
MOST_INSTRUCTIONS = 5000  # with memory accesses, of all kernels of a launch
MOST_TILES = MOST_RUNS = 65_536

Space = Literal["global", "shared", "local"]
Kind = Literal["load", "store", "atomic", "async_copy", "ldmatrix", "stmatrix", "wgmma", "bulk_copy"]
Extent = Annotated[tuple[Number, Number, Number], Meta(description="x, y, z")]


class Request(Frozen, frozen=True, kw_only=True):
    """The addresses of one request of a warp, as an example of an instruction.

    Attributes:
        block: linear index of the block; warp: of the warp in its block.
        size_bytes: bytes per lane; of wgmma and bulk copies, bytes of the region that all lanes access together.
        addresses: by lane, in bytes from the start of the array (global), of the block's shared memory, or of the
            thread's local memory; -1 for a lane that takes no part.
    """

    block: Count
    warp: Count
    size_bytes: Number
    addresses: Annotated[tuple[Annotated[int, Meta(ge=-1)], ...], Meta(min_length=WARP, max_length=WARP)]


class Counted(Frozen, frozen=True, kw_only=True):
    """What Nsight Compute counted at an instruction, in the same launch on the same inputs; None for what it lacks.

    Attributes:
        requests: executions of the instruction, per warp; lanes: active ones, summed over the executions.
        lines: cache lines of 128 bytes that the L1 cache looks up.
        sectors: of 32 bytes, asked of the L1 cache's next level ("theoretical" in Nsight Compute).
        wavefronts, wavefronts_ideal: of shared memory.
    """

    requests: Count | None = None
    lanes: Count | None = None
    lines: Count | None = None
    sectors: Count | None = None
    wavefronts: Count | None = None
    wavefronts_ideal: Count | None = None


class Instruction(Frozen, frozen=True, kw_only=True):
    """What one memory instruction did in one kernel of the launch, summed over the traced blocks.

    An asynchronous copy reads global and writes shared memory: it has one entry per space. The bytes of wgmma are those
    of both operands in shared memory, which the warps of a warpgroup read together.

    Attributes:
        launch: index of the kernel in the launch of the variant.
        offset: bytes from the kernel's first instruction.
        opcode: as it is disassembled, such as "LDG.E.128"; "" if it is unknown.
        file: name of the source file; "" without a line table. line: from 1; 0 without a line table.
        text: the source line.
        array: the argument that the addresses belong to; "" for several, or for memory that is no argument.
        requests: executions by a warp with at least one active lane.
        lanes: accesses by a lane; bytes: asked for by all of them.
        distinct_bytes: of each request, summed; a word that several lanes of a warp read counts once.
        lines: distinct cache lines of 128 bytes per request, summed; global memory only.
        sectors: distinct sectors of 32 bytes per request, summed; None for shared memory. Of an asynchronous copy, its
            pieces that lie in one sector of source and target.
        sectors_ideal: the fewest sectors that hold the distinct bytes of each request, summed.
        wavefronts: of shared memory, summed; None for other memory and bulk copies.
            Those of wgmma are as if it had no conflicts; those in the memory of another block are left out.
        wavefronts_ideal: without bank conflicts, summed; by the definition of Nsight Compute.
        ways: largest number of distinct words of one bank in one pass of a request; 1 without conflict.
        same_address: of an atomic, the most operations by lanes that one address receives from this instruction.
        same_address_lanes: the most of a single request. Both are None if they are not known: for shared memory of
            other blocks, and where there are too many addresses.
        example: a request whose sectors or wavefronts are the median of all.
    """

    launch: Count
    offset: Count
    opcode: Text
    file: Text
    line: Count
    text: Text
    space: Space
    kind: Kind
    array: Text
    requests: Number
    lanes: Number
    bytes: Count
    distinct_bytes: Count
    lines: Count | None = None
    sectors: Count | None = None
    sectors_ideal: Count | None = None
    wavefronts: Count | None = None
    wavefronts_ideal: Count | None = None
    ways: Number | None = None
    same_address: Number | None = None
    same_address_lanes: Number | None = None
    example: Request
    ncu: Counted | None = None


class Reuse(Frozen, frozen=True, kw_only=True):
    """How many distinct bytes of global memory blocks read, in sectors of 32 bytes, of traced accesses by lanes only.

    Attributes:
        block_bytes: distinct bytes that a block reads; the median over blocks.
        wave_blocks: blocks of the first wave: those that fit on the GPU at once.
        wave_bytes: distinct bytes that the first wave reads.
        wave_bytes_of_blocks: the sum of what its blocks read, each counted by itself.
    """

    block_bytes: Count
    wave_blocks: Number
    wave_bytes: Count
    wave_bytes_of_blocks: Count


class Kernel(Frozen, frozen=True, kw_only=True):
    """One kernel of the launch.

    Attributes:
        traced_blocks: blocks whose accesses are in the counts; the whole grid if it equals the product of `grid`.
        entries: traced accesses by lanes; lost: those for which the buffer had no room.
        untraced: opcodes of instructions that access memory and that the trace cannot see, with how many of them
            are in the code, such as ("UTMALDG.2D", 4).
        same_address: the most atomic operations that one address of global memory receives from all instructions;
            None without any, or if it is not known.
    """

    launch: Count
    kernel: Text
    mangled: Text
    grid: Extent
    block: Extent
    traced_blocks: Number
    entries: Count
    lost: Count
    untraced: tuple[tuple[Text, Number], ...] = ()
    same_address: Number | None = None
    reuse: Reuse | None = None


class Tile(Frozen, frozen=True, kw_only=True):
    """The part of an output that one block writes: the smallest box of elements that holds it; ends are exclusive."""

    block: Count
    rows: tuple[Count, Count]
    columns: tuple[Count, Count]


class Owners(Frozen, frozen=True, kw_only=True):
    """Who writes which element of a two-dimensional output.

    Attributes:
        array: the argument; rows, columns: its extent in elements.
        tiles: of each traced block that writes to it, in the order of the blocks.
        threads: linear index of the thread that writes each element of the first tile, row by row, as runs of
            (thread, elements); thread -1 for an element that nobody writes; empty if there are too many runs.
    """

    array: Text
    rows: Number
    columns: Number
    tiles: Annotated[tuple[Tile, ...], Meta(max_length=MOST_TILES)]
    threads: Annotated[tuple[tuple[Annotated[int, Meta(ge=-1)], Number], ...], Meta(max_length=MOST_RUNS)]


class AccessCase(Case, frozen=True, kw_only=True):
    """The traced launch; what is below is None unless the status is ok.

    Attributes:
        counted: status of the capture by Nsight Compute of the same launch; counted_reason: why it is not ok.
        owners: None if no output is two-dimensional or the trace sees none of its stores.
    """

    max_error_over_tolerance: float | None = None
    kernels: tuple[Kernel, ...] | None = None
    instructions: Annotated[tuple[Instruction, ...], Meta(max_length=MOST_INSTRUCTIONS)] | None = None
    owners: Owners | None = None
    counted: Status | None = None
    counted_reason: Text = ""

    def __post_init__(self) -> None:
        """Checks that there are results if and only if the status is ok."""
        only_if_ok(self, "max_error_over_tolerance", "kernels", "instructions")


class Accesses(Measured, tag="accesses", frozen=True, kw_only=True):
    """The accesses of a variant; `tracer_sha256` is the library that traced them."""

    tracer_sha256: Sha256
    cases: tuple[AccessCase, ...]
    session: Session
    settings: AccessSettings
