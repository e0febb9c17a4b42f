"""What would help next: the model run forward from a kernel, with one thing at a time as good as it can be."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from warplog.analysis.mechanisms.ceilings import Gpu
from warplog.analysis.mechanisms.model import Calibration, Prediction, predict, total
from warplog.analysis.mechanisms.work import LINE_SECTORS, SECTOR, WIDEST, Launch, Work
from warplog.analysis.verdicts import Timed
from warplog.catalog.contract import Mechanism

_BINDS = 0.9  # of the time: a unit that works as long bounds a kernel, as in `bounds`
_HALF = 2
_OF_STEP = 2  # barriers: shared memory is filled, and read


@dataclass(frozen=True)
class Mended:
    """A forecast.

    Attributes:
        mechanism: what is mended.
        prediction: what that should save.
        bound: the unit that works longest afterwards, if that is most of the time; "" otherwise.
    """

    mechanism: Mechanism
    prediction: Prediction
    bound: str


def forecasts(
    launch: Launch, timed: Timed, gpu: Gpu, calibration: Calibration, compulsory_bytes: float = math.nan
) -> list[Mended]:
    """Returns what mending each thing should save, the most first; without what is as good as it can be.

    Args:
        launch, timed: the kernels and their time.
        compulsory_bytes: what the algorithm has to move between device memory and the GPU; NaN if unknown.
    """
    found = []
    for mechanism, mended, kernels in _mended(launch, compulsory_bytes):
        prediction = predict(launch, mended, timed, gpu, calibration, kernels)
        if prediction and prediction.saved_us > 0:
            found.append(Mended(mechanism, prediction, _bound(mended, timed.us - prediction.saved_us, gpu)))
    return sorted(found, key=lambda each: -each.prediction.saved_us)


def _bound(launch: Launch, us: float, gpu: Gpu) -> str:
    busy = total(launch, gpu)
    longest = max(busy, key=busy.__getitem__, default="")
    return longest if busy.get(longest, 0.0) >= _BINDS * us else ""


def _mended(launch: Launch, compulsory_bytes: float) -> Iterator[tuple[Mechanism, Launch, int]]:
    moved = sum(work.dram_read + _written(work) for work in launch)
    least = compulsory_bytes / moved if moved > compulsory_bytes else 1.0
    for mechanism, mend in MENDS.items():
        mended = [mend(work) for work in launch]
        if mechanism in _BYTES:
            shares = (max(least, _BYTES[mechanism](work)) for work in launch)
            mended = [_moving(work, share) for work, share in zip(mended, shares, strict=True)]
        if mended != list(launch):
            yield mechanism, mended, len(launch)
    if len(launch) > 1:
        yield "launches", launch, 1
    # The bytes of excess sectors are a matter of coalescing. A load that follows a pointer has a sector of its own.
    shares = (1.0 if work.chases else min(1.0, least / _asked(work)) for work in launch)
    yield (
        "dram_bytes",
        [_moving(work, share) for work, share in zip(launch, shares, strict=True)],
        len(launch),
    )


def _coalesced(work: Work) -> Work:
    """Lanes access neighbours: an excess sector is a wavefront and a sector less, and a request has a whole line."""
    excess = work.excess_sectors
    if not excess:
        return work
    loads, stores = work.asked_sectors
    kept = (loads + stores) / (work.load_sectors + work.store_sectors)
    l2_sectors = max(kept * work.l2_sectors, work.l2_sectors - excess)
    return replace(
        _with_fewer_wavefronts(work, excess),
        load_sectors=loads,
        store_sectors=stores,
        l2_sectors=l2_sectors,
        l2_requests=min(work.l2_requests, l2_sectors / LINE_SECTORS),
    )


def _without_conflicts(work: Work) -> Work:
    fewer = _with_fewer_wavefronts(work, work.conflicts)
    return replace(fewer, conflicts=0.0, shared_wavefronts=work.shared_wavefronts - work.conflicts)


def _without_spills(work: Work) -> Work:
    """What is spilled is a line of L1 and, as far as that is too small, of L2."""
    sectors = min(work.spilled_sectors, work.l2_sectors)
    fewer = _with_fewer_wavefronts(work, work.spilled_sectors / LINE_SECTORS)
    return replace(
        _with_fewer(fewer, work.spills),
        l2_sectors=work.l2_sectors - sectors,
        l2_requests=work.l2_requests - sectors / LINE_SECTORS,
        spills=0.0,
    )


def _widened(work: Work) -> Work:
    """Neighbouring accesses are joined to the widest; lanes that lie apart have no neighbours.

    A thread joins its own accesses. One that has too few of them takes over those of others, so that there are fewer,
    and fewer blocks wait at barriers, or add what their warps have in common to global memory. Where these combine what
    they load, each of them does what it did before, beside loading.
    Loads whose addresses come from other loads cannot be joined. Those that fill shared memory are waited for in each
    step between two barriers, however wide they are.
    """
    if work.excess_sectors or work.chases:
        return work
    kept = [min(1.0, width / WIDEST) if width else 1.0 for width in work.widths]
    loads, stores = work.loads * kept[0], work.stores * kept[1]
    fewer = _with_fewer(work, work.loads + work.stores - loads - stores)
    blocks = max(1.0, work.blocks * min(1.0, max(loads, stores) / work.warps))
    left = blocks / work.blocks
    of_blocks = left if work.atomics <= work.warps else 1.0
    rounds = min(work.rounds, work.barriers / work.warps / _OF_STEP) if work.shared_accesses else 0.0
    joined = replace(
        fewer,
        blocks=blocks,
        barriers=left * work.barriers,
        atomics=of_blocks * work.atomics,
        atomic_sectors=of_blocks * work.atomic_sectors,
        same_address=of_blocks * work.same_address,
        loads=loads,
        stores=stores,
        load_bytes=work.widths[0] / kept[0],
        store_bytes=work.widths[1] / kept[1],
    )
    if _combines(work):
        joined = _of_fewer_blocks(joined, left)
    return replace(joined, in_flight=loads / joined.warps / rounds) if joined.rounds < rounds else joined


def _combines(work: Work) -> bool:
    """Whether blocks combine what they load: most warps store or add nothing, and L2 sends mostly these loads."""
    return _HALF * (work.stores + work.atomics) < work.warps and work.l2_sectors < _HALF * work.load_sectors


def _of_fewer_blocks(work: Work, left: float) -> Work:
    """Returns what is left with this share of the blocks, all of which are alike but for accesses to global memory."""
    accesses, lines = work.loads + work.stores, work.load_sectors / LINE_SECTORS
    return replace(
        work,
        instructions=accesses + left * (work.instructions - accesses),
        pipe_cycles={pipe: left * cycles for pipe, cycles in work.pipe_cycles.items()},
        l1_wavefronts=lines + left * (work.l1_wavefronts - lines),
        shared_wavefronts=left * work.shared_wavefronts,
        conflicts=left * work.conflicts,
        shared_accesses=left * work.shared_accesses,
    )


def _moving(work: Work, share: float) -> Work:
    """Only a share of the bytes moves to and from device memory."""
    return replace(work, dram_read=share * work.dram_read, dram_written=share * work.dram_written)


def _written(work: Work) -> float:
    """Returns the bytes written to device memory that may be of the kernel: no more than it stores, adds and spills.

    Meanwhile, L2 also writes what others left in it. Without any such sectors, a kernel stores in bulk, uncounted.
    """
    own = SECTOR * (work.store_sectors + work.atomic_sectors + work.spilled_sectors)
    return min(work.dram_written, own or math.inf)


def _asked(work: Work) -> float:
    """Returns the share of the bytes of device memory that is left if lanes access neighbours; 1 without accesses.

    A sector that is written in part is read first.
    """
    loads, stores = work.loads * work.widths[0], work.stores * work.widths[1]
    written = work.store_sectors * (2 if stores < work.store_sectors else 1)
    sectors = work.load_sectors + written
    return min(1.0, (loads + stores) / sectors) if sectors else 1.0


def _unspilled(work: Work) -> float:
    """Returns the share of the bytes of device memory that is left without spills; 1 without any."""
    moved = work.dram_read + work.dram_written
    return max(0.0, 1 - SECTOR * work.spilled_sectors / moved) if work.spills and moved else 1.0


def _even(work: Work) -> Work:
    """The blocks of a last, partial wave are spread over those before."""
    return replace(work, blocks=work.sms * (work.blocks // work.sms)) if work.blocks > work.sms else work


def _spread(work: Work) -> Work:
    """The warps of too few blocks are spread over SMs. None of them does less, and the busiest SM has whole ones.

    Whether another cluster fits, which needs SMs of one GPC, counts do not tell.
    """
    if work.multicasts:
        return work
    blocks = max(work.blocks, work.warps / math.ceil(work.warps / work.sms))
    return replace(work, blocks=blocks, block_warps=work.warps / blocks)


def _with_fewer_wavefronts(work: Work, wavefronts: float) -> Work:
    """Returns the work without some wavefronts of L1, each of which is a cycle of an SM."""
    return replace(work, l1_wavefronts=work.l1_wavefronts - min(wavefronts, work.l1_wavefronts))


def _with_fewer(work: Work, instructions: float) -> Work:
    """Returns the work without some instructions of loads and stores."""
    lsu = max(0.0, work.pipe_cycles.get("lsu", 0.0) - instructions / work.sms)
    return replace(
        work,
        instructions=work.instructions - instructions,
        pipe_cycles={**work.pipe_cycles, "lsu": lsu} if "lsu" in work.pipe_cycles else work.pipe_cycles,
    )


# What is left of the bytes of device memory; of these, the compulsory ones are.
_BYTES: Mapping[Mechanism, Callable[[Work], float]] = {"coalescing": _asked, "spills": _unspilled}
MENDS: Mapping[Mechanism, Callable[[Work], Work]] = {
    "coalescing": _coalesced,
    "wide_accesses": _widened,
    "bank_conflicts": _without_conflicts,
    "spills": _without_spills,
    # Warps that exchange data in shared memory need barriers; who reads behind a fence, counts do not tell.
    "barriers": lambda work: work if work.shared_accesses else replace(work, barriers=0.0),
    "atomics": lambda work: replace(work, same_address=0.0),
    "tail": _even,
    "idle_sms": _spread,
}
