"""The raw counters to request from ncu: those that the registry needs, except those that the GPU cannot collect.

Which chip has which counter was read from the library `nvperf_host` of the package ncu-report, which lists the
counters of every chip and needs no GPU. ncu refuses the whole capture if the chip does not know one of the names.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from warplog.core.errors import WarplogError
from warplog.metrics.metric import Metric
from warplog.metrics.names import (
    ELAPSED,
    STALL,
    TENSOR_MEMORY,
    TENSOR_OPCODES,
    TENSOR_PATH,
    THREADS_COUNTER,
)
from warplog.metrics.registry import METRICS

Capability = tuple[int, int]
SetName = Literal["lean", "tensor", "full"]


@dataclass(frozen=True)
class Chips:
    """The compute capabilities that have a counter: from `first` to `last`, inclusive."""

    first: Capability = (7, 0)
    last: Capability = (99, 9)

    def have(self, capability: Capability) -> bool:
        """Returns whether this compute capability lies in the range."""
        return self.first <= capability <= self.last


def alternatives(slot: str) -> tuple[str, ...]:
    """Returns the raw counter names of one input of a metric: `a|b?` gives (a, b), `base:KEY` gives (base,)."""
    return tuple(name.split(":", 1)[0] for name in slot.rstrip("?").split("|"))


_RUBIN = Chips((10, 7), (10, 7))
_PACKED_FP32 = (Chips((10, 0), (10, 0)), Chips((10, 3), (10, 3)), _RUBIN)
_OLDER_FP8 = (Chips((10, 0), (10, 1)), Chips((11, 0), (11, 9)))
_NEWER_FP8 = (Chips((10, 3), (10, 9)), Chips((12, 0)))
_HOPPER = Chips((9, 0), (9, 9))
# Integrated GPUs (8.7, 10.1, 11.0, 12.1) have no DRAM of their own, so they have no DRAM counters.
_DRAM_READ = (Chips((7, 0), (8, 6)), Chips((8, 9), (10, 0)), Chips((10, 3), (10, 3)))
_DRAM_OP_READ = (_RUBIN, Chips((12, 0), (12, 0)))
_FROM_8 = Chips((8, 0))
_WITH_TENSOR_MEMORY = Chips((10, 0), (11, 9))
_TENSOR_MEMORY_COUNTERS = frozenset(
    name
    for metric in METRICS.values()
    if metric.group == TENSOR_MEMORY
    for slot in metric.counters
    for name in alternatives(slot)
)
_MMA_A_READS = "sm__mem_tensor_reads_op_utcmma_matrix_a_{}.sum"
# A counter that is not listed here exists from compute capability 7.5 to 12.x. Each chip counts its own subset of the
# tensor operation types.
LIMITED = MappingProxyType(
    {
        STALL.format("gmma"): (_HOPPER,),
        STALL.format("imc_miss"): (Chips(last=(9, 9)),),
        STALL.format("tex_throttle"): (Chips(last=(10, 6)), Chips((11, 0))),
        "dram__bytes.sum": (*_DRAM_READ, *_DRAM_OP_READ),
        "dram__bytes.sum.per_second": (*_DRAM_READ, *_DRAM_OP_READ),
        f"gpu__dram_throughput{ELAPSED}": (*_DRAM_READ, *_DRAM_OP_READ),
        "dram__bytes_read.sum": _DRAM_READ,
        "dram__bytes_write.sum": _DRAM_READ,
        "dram__bytes_op_read.sum": _DRAM_OP_READ,
        "dram__bytes_op_write.sum": _DRAM_OP_READ,
        "smsp__sass_thread_inst_executed_op_fadd2_pred_on.sum": _PACKED_FP32,
        "smsp__sass_thread_inst_executed_op_fmul2_pred_on.sum": _PACKED_FP32,
        "smsp__sass_thread_inst_executed_op_ffma2_pred_on.sum": _PACKED_FP32,
        **dict.fromkeys(_TENSOR_MEMORY_COUNTERS, (_WITH_TENSOR_MEMORY,)),
        _MMA_A_READS.format("sp_sf"): (Chips((10, 0), (10, 6)), Chips((11, 0), (11, 9))),
        _MMA_A_READS.format("or_metadata"): (_RUBIN,),
        TENSOR_PATH.format("bf16_dst_fp32"): (_FROM_8,),
        TENSOR_PATH.format("tf32_dst_fp32"): (_FROM_8,),
        TENSOR_PATH.format("fp64"): (_FROM_8,),
        TENSOR_PATH.format("fp16"): (_HOPPER,),
        TENSOR_PATH.format("fp16_dst_fp16"): (Chips((8, 0), (8, 9)), Chips((10, 0))),
        TENSOR_PATH.format("fp16_dst_fp32"): (Chips((8, 0), (8, 9)), Chips((10, 0))),
        TENSOR_PATH.format("fp8"): (Chips((8, 9), (9, 9)),),
        TENSOR_PATH.format("fp8_dst_fp16"): _NEWER_FP8,
        TENSOR_PATH.format("fp8_dst_fp32"): _NEWER_FP8,
        TENSOR_PATH.format("fp4_fp6_dst_fp16"): _NEWER_FP8,
        TENSOR_PATH.format("fp4_fp6_dst_fp32"): _NEWER_FP8,
        TENSOR_PATH.format("fp4_fp6_fp8_dst_fp16"): _OLDER_FP8,
        TENSOR_PATH.format("fp4_fp6_fp8_dst_fp32"): _OLDER_FP8,
        TENSOR_PATH.format("fp4_dst_fp32"): (Chips((10, 0)),),
    }
)
_ALWAYS_REPORTED = ("device__attribute_", "profiler__")
# Never requested: the names differ between versions of ncu, and `dram__bytes` is the sum.
RENAMED = frozenset({"dram__bytes_op_read.sum", "dram__bytes_op_write.sum"})
# Read if a report contains them, never requested: campaigns do without their passes.
READ_ONLY = frozenset(
    {
        *RENAMED,
        THREADS_COUNTER,
        "gpc__cycles_elapsed.avg.per_second",
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    }
)
# Only in the set "full", because they cost additional passes of the kernel.
FULL_ONLY = frozenset(
    {
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "l1tex__throughput.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed",
    }
)


def counters_to_collect(set_name: str, compute_capability: Capability | None = None) -> tuple[str, ...]:
    """Returns the raw counters for `ncu --metrics`, each once, in registry order.

    `lean` covers all metrics except those that need FULL_ONLY and those of kernels that use tensor cores, which are
    their operations and their use of tensor memory; `tensor` adds these, `full` adds everything.
    Without a compute capability, the result contains only counters that every chip has.

    Raises:
        WarplogError: if the set is unknown.
    """
    sets = get_args(SetName)
    if set_name not in sets:
        raise WarplogError(f"metric set: {set_name!r}: must be one of {', '.join(sets)}")
    wanted = sets[: sets.index(set_name) + 1]
    slots = (slot for metric in METRICS.values() for slot in metric.counters if not slot.startswith("@"))
    needed = (pick for slot in slots if (pick := _first_collectable(slot, compute_capability)))
    return tuple(dict.fromkeys(name for name in needed if set_of(name) in wanted))


def set_for_opcodes(opcodes: Iterable[str] | None) -> SetName:
    """Returns the cheapest set that counts a kernel's tensor FLOPs: `lean` if its SASS has no tensor instruction.

    `opcodes` are full opcodes (`HGMMA.64x256x16.F32.BF16`). None or an empty iterable means that the SASS is
    unknown, as for kernels of a library; the result is then `tensor`.
    """
    plain = {opcode.split(".", 1)[0] for opcode in opcodes or ()}
    return "tensor" if not plain or plain & set(TENSOR_OPCODES) else "lean"


def supports(counter: str, capability: Capability) -> bool:
    """Returns whether a GPU of this compute capability can collect the counter."""
    return any(chips.have(capability) for chips in LIMITED.get(counter, (Chips(),)))


def set_of(counter: str) -> SetName:
    """Returns the smallest set that collects the counter."""
    if counter in FULL_ONLY:
        return "full"
    is_tensor = counter in _TENSOR_MEMORY_COUNTERS or counter.startswith(TENSOR_PATH.split("{", 1)[0])
    return "tensor" if is_tensor else "lean"


def is_collected(metric: Metric) -> bool:
    """Returns whether campaigns collect the metric: no input that it requires is only a counter in READ_ONLY."""
    required = (slot for slot in metric.counters if not slot.endswith("?"))
    return not any(set(alternatives(slot)) <= READ_ONLY for slot in required)


def is_of(metric: Metric, capability: Capability | None) -> bool:
    """Returns whether the GPU has what the metric describes; without a compute capability, what every GPU has."""
    has_tensor_memory = capability is not None and _WITH_TENSOR_MEMORY.have(capability)
    return metric.group != TENSOR_MEMORY or has_tensor_memory


def _first_collectable(slot: str, capability: Capability | None) -> str | None:
    for name in alternatives(slot):
        if name.startswith(_ALWAYS_REPORTED):
            return None
        if name in READ_ONLY:
            continue
        if name not in LIMITED or (capability is not None and supports(name, capability)):
            return name
    return None
