"""Theoretical occupancy: how many blocks an SM can hold, and which resource limits them.

The rules are those of NVIDIA's occupancy calculator (`cuda_occupancy.h`, CUDA 13.0) for compute capability
7.0 to 12.x, and the limits those of the CUDA Programming Guide (section "Compute Capabilities", tables 30 to 32).
Thread-block clusters and named barriers, which can lower the occupancy further, are ignored.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from warplog.core.errors import WarplogError

WARP_THREADS = 32
REGISTERS_PER_SM = 65536
_SUBPARTITIONS = 4
_REGISTER_UNIT = 256
_MOST_REGISTERS_PER_THREAD = 255
_MOST_BLOCK_THREADS = 1024
_KIB = 1024


@dataclass(frozen=True)
class SmLimits:
    """The limits of one SM of a compute capability.

    Attributes:
        shared_bytes_per_block: the most that a block gets if the kernel opts in; else it gets up to 48 KiB.
        reserved_shared_bytes: what the driver takes of each block's shared memory.
        cluster_blocks: the largest cluster that NVIDIA documents; 0 without clusters. More than 8 are not portable.
    """

    warps: int
    blocks: int
    shared_bytes: int
    shared_bytes_per_block: int
    shared_unit_bytes: int = 128
    reserved_shared_bytes: int = _KIB
    cluster_blocks: int = 0


@dataclass(frozen=True)
class Occupancy:
    """Blocks per SM that each resource allows, and the resulting occupancy.

    `limiters` are the resources that allow the fewest blocks ("warps", "blocks", "registers",
    "shared_memory"); several if they tie. `occupancy_pct` is the share of the SM's warp slots that are filled.
    """

    limit_warps_blocks: int
    limit_blocks_blocks: int
    limit_registers_blocks: int
    limit_shared_memory_blocks: int
    blocks_per_sm: int
    warps_per_sm: int
    limiters: tuple[str, ...]
    occupancy_pct: float


_A100 = SmLimits(64, 32, 164 * _KIB, 163 * _KIB)
# Clusters of 16: Hopper Tuning Guide and Blackwell Tuning Guide, of H100 and B200. The others: Programming Guide.
_HOPPER = SmLimits(64, 32, 228 * _KIB, 227 * _KIB, cluster_blocks=16)
_BLACKWELL_RTX = SmLimits(48, 24, 100 * _KIB, 99 * _KIB, cluster_blocks=8)
LIMITS = MappingProxyType(
    {
        (7, 0): SmLimits(64, 32, 96 * _KIB, 96 * _KIB, 256, 0),
        (7, 5): SmLimits(32, 16, 64 * _KIB, 64 * _KIB, 256, 0),
        (8, 0): _A100,
        (8, 6): SmLimits(48, 16, 100 * _KIB, 99 * _KIB),
        (8, 7): SmLimits(48, 16, 164 * _KIB, 163 * _KIB),
        (8, 9): SmLimits(48, 24, 100 * _KIB, 99 * _KIB),
        (9, 0): _HOPPER,
        (10, 0): _HOPPER,
        (10, 3): SmLimits(64, 32, 228 * _KIB, 227 * _KIB, cluster_blocks=8),
        (12, 0): _BLACKWELL_RTX,
        (12, 1): _BLACKWELL_RTX,
    }
)


def theoretical(
    registers_per_thread: int,
    block_threads: int,
    shared_bytes: int,
    compute_capability: tuple[int, int],
    configured_shared_bytes: int | None = None,
) -> Occupancy:
    """Returns the occupancy that a launch can reach.

    `shared_bytes` is the static plus dynamic shared memory per block, without the part that the driver
    reserves. `configured_shared_bytes` is the carve-out that the driver chose for the launch; by default the
    largest carve-out is assumed.

    Raises:
        WarplogError: if the compute capability is not in LIMITS, the number of threads is not between 1 and 1024,
            or an argument is negative.
    """
    limits = _limits(registers_per_thread, block_threads, shared_bytes, compute_capability)
    warps = -(-block_threads // WARP_THREADS)
    allowed = {
        "warps": limits.warps // warps,
        "blocks": limits.blocks,
        "registers": _blocks_by_registers(registers_per_thread, warps),
        "shared_memory": _blocks_by_shared_memory(shared_bytes, limits, configured_shared_bytes),
    }
    blocks = min(allowed.values())
    return Occupancy(
        limit_warps_blocks=allowed["warps"],
        limit_blocks_blocks=allowed["blocks"],
        limit_registers_blocks=allowed["registers"],
        limit_shared_memory_blocks=allowed["shared_memory"],
        blocks_per_sm=blocks,
        warps_per_sm=blocks * warps,
        limiters=tuple(name for name, count in allowed.items() if count == blocks),
        occupancy_pct=100.0 * blocks * warps / limits.warps,
    )


def lift(
    registers_per_thread: int, block_threads: int, shared_bytes: int, compute_capability: tuple[int, int]
) -> str:
    """Describes the smallest change of a launch that lets an SM hold more warps; "" at 100 % occupancy.

    Only one resource is changed at a time: fewer registers, less shared memory or another block size. If none
    of these changes helps, the text names the limiting resources.

    Raises:
        WarplogError: as for `theoretical`.
    """
    now = theoretical(registers_per_thread, block_threads, shared_bytes, compute_capability)
    if now.occupancy_pct >= 100:
        return ""
    sizes = range(WARP_THREADS, _MOST_BLOCK_THREADS + 1, WARP_THREADS)
    nearest = sorted(sizes, key=lambda threads: abs(threads - block_threads))
    fewer = ((f"{r} registers", (r, block_threads, shared_bytes)) for r in range(registers_per_thread)[::-1])
    less = (
        (f"{s} bytes", (registers_per_thread, block_threads, s)) for s in range(shared_bytes - 128, -1, -128)
    )
    other = ((f"{t} threads", (registers_per_thread, t, shared_bytes)) for t in nearest)
    changes = {"registers": fewer, "shared_memory": less, "warps": other, "blocks": other}
    for limiter in now.limiters:
        for change, launch in changes[limiter]:
            better = theoretical(*launch, compute_capability)
            if better.warps_per_sm > now.warps_per_sm:
                return f"{now.warps_per_sm} warps per SM; {change} would allow {better.warps_per_sm}"
    limiters = [name.replace("_", " ") for name in now.limiters]
    how = "jointly limited" if len(limiters) > 1 else "limited"
    return f"{now.warps_per_sm} warps per SM; {how} by {' and '.join(limiters)}"


def _limits(registers: int, threads: int, shared: int, capability: tuple[int, int]) -> SmLimits:
    limits = LIMITS.get(capability)
    if limits is None:
        capabilities = ", ".join(f"{major}.{minor}" for major, minor in LIMITS)
        requested = f"{capability[0]}.{capability[1]}"
        raise WarplogError(
            f"compute capability: {requested}: its occupancy limits are unknown; known: {capabilities}"
        )
    if not 1 <= threads <= _MOST_BLOCK_THREADS or registers < 0 or shared < 0:
        requested = f"{threads} threads, {registers} registers, {shared} bytes"
        raise WarplogError(
            f"launch: {requested}: a block has 1 to {_MOST_BLOCK_THREADS} threads; no value may be negative"
        )
    return limits


def _blocks_by_registers(registers: int, warps: int) -> int:
    """Registers are allocated per warp, in units of 256, within each of the four sub-partitions of the SM."""
    if registers > _MOST_REGISTERS_PER_THREAD:
        return 0
    per_warp = max(_round_up(registers * WARP_THREADS, _REGISTER_UNIT), _REGISTER_UNIT)
    return _SUBPARTITIONS * (REGISTERS_PER_SM // _SUBPARTITIONS // per_warp) // warps


def _blocks_by_shared_memory(shared_bytes: int, limits: SmLimits, configured: int | None) -> int:
    allocated = _round_up(shared_bytes + limits.reserved_shared_bytes, limits.shared_unit_bytes)
    if allocated > limits.shared_bytes_per_block + limits.reserved_shared_bytes:
        return 0
    available = limits.shared_bytes if configured is None else configured
    return available // allocated if allocated else limits.blocks


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def busy_share(values: Mapping[str, float], sms: float) -> float:
    """Returns the share of the kernel's cycles in which SMs were active, on average; NaN if unknown."""
    most = values.get("ipc", math.nan) * sms * values.get("gpu_cycles", math.nan)
    return values.get("instructions_executed", math.nan) / most if most > 0 else math.nan
