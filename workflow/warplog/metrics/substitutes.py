"""Counters that a report lacks, computed from others that it has.

ncu's own sets collect other counters than campaigns: instructions per cycle instead of their number, sectors instead
of bytes, warp samples instead of cycles per state. A counter that a report contains is never replaced.
"""

from collections.abc import Iterator, Mapping

from warplog.metrics.names import (
    OPCODE_COUNTER,
    STALL,
    STALL_REASONS,
    TENSOR_PATH,
    TENSOR_TYPES,
    THREAD_OP,
    THREADS_COUNTER,
)

Counters = Mapping[str, float | None]

_SECTOR_BYTES = 32
_TRAFFIC = ("dram__bytes.sum", "dram__bytes_read.sum", "dram__bytes_op_read.sum")
_CYCLES = ("smsp__cycles_elapsed.avg", "gpc__cycles_elapsed.max")
_OPERATIONS = (
    "fadd",
    "fmul",
    "ffma",
    "dadd",
    "dmul",
    "dfma",
    "hadd",
    "hmul",
    "hfma",
    "fadd2",
    "fmul2",
    "ffma2",
)
_OPCODES = {
    **{operation: operation.upper() for operation in _OPERATIONS},
    **{half: f"{half.upper()}2" for half in ("hadd", "hmul", "hfma")},
}
_SAMPLES = "smsp__pcsamp_warps_issue_stalled_{}"
# Two states have other names in samples.
_SAMPLED = {"no_instruction": "no_instructions", "gmma": "warpgroup_arrive"}
_LATENCY = "smsp__average_warp_latency_per_inst_issued.ratio"
_TENSOR_PIPE = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
_SECTORS, _TRAFFIC_RATE, _DURATION = (
    "lts__t_sectors.sum",
    "dram__bytes.sum.per_second",
    "gpu__time_duration.sum",
)
_CLOCK = "gpc__cycles_elapsed.avg.per_second"
INPUTS = frozenset(
    {
        *(f"{THREAD_OP.format(operation)}.per_cycle_elapsed" for operation in _OPERATIONS),
        *(_SAMPLES.format(_SAMPLED.get(reason, reason)) for reason in STALL_REASONS),
        *(*_CYCLES, _SECTORS, _TRAFFIC_RATE, _DURATION, _TENSOR_PIPE),
    }
)
# These chips have a second tensor pipe, for tcgen05 instructions.
_TWO_TENSOR_PIPES = range(10, 12)


def completed(counters: Counters, capability: tuple[int, int] | None) -> Counters:
    """Returns the counters and, where a report lacks them, these:

    - thread instructions by operation: the threads that executed the opcode, or the instructions per elapsed cycle
      times the elapsed cycles,
    - the SM clock: elapsed cycles per duration,
    - bytes looked up in L2: sectors of 32 bytes,
    - bytes of device memory traffic: their rate times the duration,
    - cycles per issued instruction by warp state: samples in the state per sample in which the warp issued; only if
      the report has no counter of any state,
    - tensor operations: none, if the tensor pipe was idle.
    """
    computed = dict(_computed(counters, capability))
    return {**computed, **counters} if computed else counters


def _computed(counters: Counters, capability: tuple[int, int] | None) -> Iterator[tuple[str, float]]:
    yield from _thread_instructions(counters)
    sectors = counters.get(_SECTORS)
    if sectors is not None:
        yield "lts__t_bytes.sum", _SECTOR_BYTES * sectors
    cycles = counters.get(_CYCLES[-1])
    rate, duration_ns = counters.get(_TRAFFIC_RATE), counters.get(_DURATION)
    if rate is not None and duration_ns is not None and not any(name in counters for name in _TRAFFIC):
        yield "dram__bytes.sum", rate * duration_ns * 1e-9
    if cycles is not None and duration_ns:
        yield _CLOCK, cycles / duration_ns * 1e9
    if not any(STALL.format(reason) in counters for reason in STALL_REASONS):
        yield from _sampled_states(counters)
    counted = [OPCODE_COUNTER, *map(TENSOR_PATH.format, TENSOR_TYPES)]
    is_only_pipe = capability is not None and capability[0] not in _TWO_TENSOR_PIPES
    if is_only_pipe and counters.get(_TENSOR_PIPE) == 0 and not any(name in counters for name in counted):
        yield TENSOR_PATH.format("fp16_dst_fp32"), 0.0


def _thread_instructions(counters: Counters) -> Iterator[tuple[str, float]]:
    cycles = next((value for name in _CYCLES if (value := counters.get(name)) is not None), None)
    has_opcodes = counters.get(THREADS_COUNTER) is not None and any(
        name.startswith(f"{THREADS_COUNTER}:") for name in counters
    )
    for operation in _OPERATIONS:
        name = THREAD_OP.format(operation)
        rate = counters.get(f"{name}.per_cycle_elapsed")
        if has_opcodes:
            yield name, counters.get(f"{THREADS_COUNTER}:{_OPCODES[operation]}") or 0.0
        elif rate is not None and cycles is not None:
            yield name, rate * cycles


def _sampled_states(counters: Counters) -> Iterator[tuple[str, float]]:
    issued = counters.get(_SAMPLES.format("selected"))
    if not issued:
        return
    total = 0.0
    for reason in STALL_REASONS:
        samples = counters.get(_SAMPLES.format(_SAMPLED.get(reason, reason)))
        if samples is not None:
            total += samples
            yield STALL.format(reason), samples / issued
    yield _LATENCY, total / issued
