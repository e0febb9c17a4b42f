"""What a kernel does: counts that do not depend on how long it takes, and its shape."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from warplog.analysis.mechanisms.code import Code
from warplog.metrics.banks import WAVEFRONTS, shared_wavefronts

PIPES = ("fma", "alu", "fp64", "xu", "lsu", "tensor")
_XU_PER_CYCLE = 0.5  # its 16 lanes per SM take a warp in two cycles
_WORD, WIDEST = 4.0, 16.0  # bytes per lane
LINE_SECTORS = 4
SECTOR = 32  # bytes
_LOOKUPS = 2  # of a sector, where L2 has two partitions
_SHARED = "shared_bytes_per_block"
_SHAPE = ("grid_blocks", "block_threads", "gpu_cycles", "instructions_executed")
COUNTERS = (
    *_SHAPE,
    *(f"pipe_{pipe}_pct" for pipe in PIPES),
    _SHARED,
    "pipe_xu_instructions",
    *WAVEFRONTS,
    *(
        "l2_requests_from_sms",
        "l2_sectors_from_sms",
        "l2_bytes",
        "dram_bytes_read",
        "dram_bytes_written",
        "l1_hit_pct",
    ),
    *("global_load_sectors_per_request", "global_store_sectors_per_request"),
    *("global_reduction_requests", "global_atomic_requests", "l2_reduction_sectors", "l2_atomic_sectors"),
    *(
        f"inst_{name}"
        for name in ("ldg", "stg", "lds", "sts", "ldl", "stl", "bar", "membar", "syncs", "ldgdepbar")
    ),
    *(f"occupancy_limit_{name}_blocks" for name in ("warps", "registers", "shared_memory", "blocks")),
)


@dataclass(frozen=True)
class Work:
    """The work of one kernel of a launch, over all SMs unless it says otherwise.

    Attributes:
        sms, mhz: SMs of the GPU, and the clock that the kernel ran at when it was timed.
        blocks, block_warps, resident: of the grid, warps of each, and how many of them an SM holds.
        block_shared_bytes: shared memory of each block.
        pipe_cycles: cycles of an SM in which each pipe was busy.
        l1_wavefronts: of the data stage of L1, which shared memory shares; NaN if not counted.
        shared_wavefronts: for shared memory; no more than L1 had, where these were counted.
        conflicts: those of them that bank conflicts add.
        l2_bytes: looked up in L2, in each of its partitions.
        loads, stores: warp-wide accesses to global memory, and their sectors.
        load_bytes, store_bytes: of a lane and access; NaN if unknown.
        copies: groups of asynchronous copies to shared memory, which are waited for together, summed over warps.
        in_flight: loads of a thread that are in flight at a time; 0 if unknown.
        overlapped: share of the time in hot loops with a load or a copy to shared memory in flight; NaN if unknown.
        dependent: instructions that each need the result of the one before, summed over warps; 0 if unknown.
        traced: its memory accesses were traced, at some case.
        atomics: warp-wide atomics on global memory, and their sectors.
        same_address: atomics by lanes on the address of global memory that most of them are on; a guess if `traced` is
            not set, or the trace does not have the addresses.
        adds_floats: these are in floating point.
        multicasts: some of its copies go to several blocks of a cluster.
        received: requests to L2 that SMs have an answer to, where one answers several SMs; NaN if each has its own.
        spills: loads and stores of local memory.
        spill_bytes: of a lane and access of local memory.
        arrivals: instructions on mbarriers.
        chases: the address of a load comes from another load.
        stores_left: bulk stores that the mean wait for them leaves in flight; NaN without one.
        store_waits: share of the time in which the warp that stores for a block waits for bulk stores; NaN if unknown.
        generic: loads and stores by generic addresses that reach shared memory, as was traced.
        port_conflicts: FFMAs that read their registers a cycle longer, summed over warps; NaN if unknown.
    """

    sms: float
    mhz: float
    blocks: float
    block_warps: float
    resident: float
    instructions: float
    pipe_cycles: Mapping[str, float] = field(default_factory=dict)
    l1_wavefronts: float = math.nan
    shared_wavefronts: float = 0.0
    conflicts: float = 0.0
    l2_requests: float = math.nan
    l2_sectors: float = math.nan
    l2_bytes: float = 0.0
    dram_read: float = 0.0
    dram_written: float = 0.0
    l1_hit: float = 0.0
    loads: float = 0.0
    load_sectors: float = 0.0
    load_bytes: float = math.nan
    stores: float = 0.0
    store_sectors: float = 0.0
    store_bytes: float = math.nan
    shared_accesses: float = 0.0
    copies: float = 0.0
    in_flight: float = 0.0
    overlapped: float = math.nan
    dependent: float = 0.0
    traced: bool = False
    atomics: float = 0.0
    atomic_sectors: float = 0.0
    same_address: float = 0.0
    adds_floats: bool = False
    multicasts: bool = False
    received: float = math.nan
    spills: float = 0.0
    spill_bytes: float = _WORD
    barriers: float = 0.0
    fences: float = 0.0
    arrivals: float = 0.0
    chases: bool = False
    stores_left: float = math.nan
    store_waits: float = math.nan
    block_shared_bytes: float = 0.0
    generic: float = 0.0
    port_conflicts: float = math.nan

    @property
    def warps(self) -> float:
        """The warps of the grid."""
        return self.blocks * self.block_warps

    @property
    def lives(self) -> float:
        """How many blocks the busiest SM runs one after the other, where those that it holds run at a time."""
        return max(1.0, math.ceil(self.blocks / self.sms) / self.resident)

    @property
    def unevenness(self) -> float:
        """The blocks of the busiest SM over those of the mean SM; at least 1."""
        return math.ceil(self.blocks / self.sms) * self.sms / self.blocks

    @property
    def is_clean(self) -> bool:
        """Whether the work of L1 and L2 was counted."""
        return not math.isnan(self.l1_wavefronts + self.l2_requests)

    @property
    def asked_sectors(self) -> tuple[float, float]:
        """Of the sectors of loads and of stores, as many as hold the bytes that these ask for."""
        load, store = self.widths
        return min(self.load_sectors, self.loads * load), min(self.store_sectors, self.stores * store)

    @property
    def excess_sectors(self) -> float:
        """Sectors of loads and stores beyond the bytes that these ask for."""
        return self.load_sectors + self.store_sectors - sum(self.asked_sectors)

    @property
    def spilled_sectors(self) -> float:
        """Sectors of local memory, where lanes are neighbours: one for each byte of a lane."""
        return self.spills * self.spill_bytes

    @property
    def widths(self) -> tuple[float, float]:
        """The bytes per lane of loads and of stores."""
        return (
            _width(self.loads, self.load_sectors, self.load_bytes),
            _width(self.stores, self.store_sectors, self.store_bytes),
        )

    @property
    def rounds(self) -> float:
        """How often a warp waits for loads: those that are in flight at a time arrive together."""
        return self.loads / self.warps / self.in_flight if self.in_flight else 0.0


Launch = Sequence[Work]  # the kernels of a launch, in their order


def work_of(
    values: Mapping[str, float],
    sms: float,
    mhz: float,
    code: Code,
    on_one: float | None = None,
    multicasts: bool = False,
) -> Work | None:
    """Returns the work of a kernel by its metrics of the registry; None without its shape, cycles and instructions.

    Percentages of a pipe times the cycles of the same capture are the cycles in which that pipe worked: the same
    whatever the kernel waits for. Unless the trace tells more, atomics of one sector each are assumed to be on one
    address, one lane of each warp.

    Args:
        code: what its machine code tells.
        on_one: atomics on one address per warp-wide atomic, by the trace; NaN if it does not tell, None without one.
        multicasts: its code has copies to several blocks of a cluster.
    """
    blocks, threads, cycles, instructions = (values.get(name, math.nan) for name in _SHAPE)
    if math.isnan(blocks + threads + cycles + instructions) or not sms > 0 or not mhz > 0:
        return None

    def count(name: str) -> float:
        value = values.get(name, math.nan)
        return 0.0 if math.isnan(value) else value

    def cycles_of(name: str) -> float:
        return values.get(name, math.nan) / 100 * cycles

    pipes = {pipe: cycles_of(f"pipe_{pipe}_pct") for pipe in PIPES}
    if math.isnan(pipes["xu"]):
        pipes["xu"] = count("pipe_xu_instructions") / _XU_PER_CYCLE / sms
    warps = math.ceil(threads / 32)
    limits = [
        values.get(f"occupancy_limit_{name}_blocks", math.nan)
        for name in ("warps", "registers", "shared_memory", "blocks")
    ]
    atomics = tuple(
        (count(f"global_{kind}_requests"), count(f"l2_{kind}_sectors")) for kind in ("reduction", "atomic")
    )
    ideal, conflicts = (0.0 if math.isnan(known) else known for known in shared_wavefronts(values))
    fits = min((limit for limit in limits if limit > 0), default=1.0)
    return Work(
        sms=sms,
        mhz=mhz,
        blocks=blocks,
        block_warps=warps,
        resident=max(1.0, min(fits, math.ceil(blocks / sms))),
        instructions=instructions,
        pipe_cycles={pipe: busy for pipe, busy in pipes.items() if busy > 0},
        l1_wavefronts=values.get("l1_wavefronts", math.nan),
        shared_wavefronts=ideal + conflicts,
        conflicts=conflicts,
        l2_requests=values.get("l2_requests_from_sms", math.nan),
        l2_sectors=values.get("l2_sectors_from_sms", math.nan),
        l2_bytes=count("l2_bytes"),
        dram_read=count("dram_bytes_read"),
        dram_written=count("dram_bytes_written"),
        l1_hit=count("l1_hit_pct") / 100,
        loads=count("inst_ldg"),
        load_sectors=count("inst_ldg") * count("global_load_sectors_per_request"),
        load_bytes=code.load_bytes,
        stores=count("inst_stg"),
        store_sectors=count("inst_stg") * count("global_store_sectors_per_request"),
        store_bytes=code.store_bytes,
        shared_accesses=count("inst_lds") + count("inst_sts"),
        copies=count("inst_ldgdepbar"),
        in_flight=code.in_flight,
        overlapped=code.overlapped,
        dependent=code.dependent,
        adds_floats=code.adds_floats,
        multicasts=multicasts,
        traced=on_one is not None,
        atomics=sum(requests for requests, _ in atomics),
        atomic_sectors=sum(sectors for _, sectors in atomics),
        same_address=_same_address(atomics, on_one),
        spills=count("inst_ldl") + count("inst_stl"),
        spill_bytes=_WORD if math.isnan(code.spill_bytes) else code.spill_bytes,
        barriers=count("inst_bar"),
        fences=count("inst_membar"),
        arrivals=count("inst_syncs"),
        chases=code.chases,
        stores_left=code.stores_left,
        store_waits=code.store_waits * warps,
        block_shared_bytes=count(_SHARED),
        generic=code.generic,
        port_conflicts=code.port_conflicts,
    )


def _same_address(kinds: Iterable[tuple[float, float]], on_one: float | None) -> float:
    """Returns the atomics on one address, of all kinds, given the requests and sectors of each."""
    if on_one is None or math.isnan(on_one):
        return sum(requests for requests, sectors in kinds if sectors < _LOOKUPS * requests)
    return on_one * sum(requests for requests, _ in kinds)


def _width(accesses: float, sectors: float, lane_bytes: float) -> float:
    """Returns the bytes per lane, which are the sectors of a request whose lanes are neighbours.

    If they are unknown, a request of more sectors than the widest access has is taken for one of words that lie apart,
    and any other for one of neighbours.
    """
    if not math.isnan(lane_bytes):
        return lane_bytes
    per_request = sectors / accesses if accesses else 0.0
    return _WORD if per_request > WIDEST else per_request
