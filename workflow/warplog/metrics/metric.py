"""The type `Metric`, and the formulas that metrics share."""

from collections.abc import Callable
from dataclasses import dataclass

from warplog.metrics.names import TENSOR_OPCODES

Formula = Callable[..., float | str]


@dataclass(frozen=True)
class Metric:
    """One quantity of a kernel, and the formula that computes it from a profiler's counters.

    `counters` are the inputs of `formula`, in the order of its arguments. Each is one of:

    - `a|b`: a raw ncu counter; the first alternative that the report contains is used,
    - `base:KEY`: one entry of a counter with named entries, such as the executed instructions per opcode
      (0 if the report contains the counter but not the entry),
    - `@name`: a metric defined earlier in the registry.

    A trailing `?` marks an optional input: the formula receives None if it is absent. A trailing `~` marks a metric
    that is optional only where the GPU has no counter for it. A formula returns the value in `unit`, or a phrase that
    explains why there is no value.

    A metric without counters comes from another tool (`ptxas`, `cuobjdump`, `nsys`).
    `group` is what the metric describes; only GPUs with tensor memory have metrics of the group TENSOR_MEMORY.
    """

    name: str
    unit: str
    group: str
    counters: tuple[str, ...]
    formula: Formula | None
    description: str


def same(value: float) -> float:
    """Returns the counter unchanged."""
    return value


def times(factor: float) -> Formula:
    """Returns a formula that multiplies the counter by `factor`, to convert its unit."""

    def scaled(value: float) -> float:
        return value * factor

    return scaled


def total(*values: float | None) -> float:
    """Returns the sum of the inputs; absent ones (None) are skipped."""
    return float(sum(value for value in values if value is not None))


def quotient(nothing: str) -> Formula:
    """Returns the formula `numerator / denominator`, which yields the text `nothing` if the denominator is zero."""

    def divided(numerator: float, denominator: float) -> float | str:
        return numerator / denominator if denominator else nothing

    return divided


def difference(minuend: float, subtrahend: float) -> float:
    """Returns `minuend - subtrahend`."""
    return minuend - subtrahend


def share_pct(part: float, *parts: float | None) -> float | str:
    """Returns `part` in percent of the sum of `parts`; `parts` must include it."""
    whole = total(*parts)
    return 100.0 * part / whole if whole else "no warp was ever active"


def flops(add: float, multiply: float, fused: float) -> float:
    """Returns the floating-point operations of scalar thread instructions; a fused multiply-add counts as two."""
    return add + multiply + 2.0 * fused


def threads_per_instruction(
    stated: float | None, threads: float | None, instructions: float | None
) -> float | str:
    """Returns the counter if there is one, else the executed threads per executed instruction of all opcodes."""
    if stated is not None:
        return stated
    if threads is None or instructions is None:
        return "no counter of threads per instruction is in the report"
    return threads / instructions if instructions else "no instruction was counted"


def fp32_flops(*counts: float | None) -> float:
    """Returns the FP32 operations of scalar add, multiply and FMA, and of their packed forms (two values each)."""
    add, multiply, fused, add2, multiply2, fused2 = (count or 0.0 for count in counts)
    return flops(add, multiply, fused) + 2.0 * flops(add2, multiply2, fused2)


def fp16_flops(add: float, multiply: float, fused: float) -> float:
    """Returns the FP16 operations; every half-precision instruction operates on two packed values."""
    return 2.0 * flops(add, multiply, fused)


def whole_or_parts(whole: float | None, *parts: float | None) -> float | str:
    """Returns the counter of the total if it was collected, otherwise the sum of all parts."""
    if whole is not None:
        return whole
    collected = [part for part in parts if part is not None]
    return (
        total(*collected)
        if len(collected) == len(parts)
        else "neither the total nor both of its parts were collected"
    )


def gbytes_per_s(
    per_second: float | None, moved_bytes: float | None, duration_us: float | None
) -> float | str:
    """Returns the rate that ncu counted, otherwise bytes divided by the duration; 1 GB is 10^9 bytes."""
    if per_second is not None:
        return per_second * 1e-9
    if moved_bytes is None or not duration_us:
        return "neither the rate nor bytes and duration were collected"
    return moved_bytes / duration_us * 1e-3


def shared_memory_limit(
    configured: float, most_bytes: float | None, block_bytes: float | None, *others: float
) -> float | str:
    """Returns the blocks per SM that shared memory allows, corrected for the driver's carve-out.

    The driver configures just enough shared memory for the blocks that the other resources allow. Since 2022
    ncu divides that amount, so its limit ties with the actual limiter although shared memory does not limit.
    The limit of ncu (`configured`) is therefore used only if it is below all `others`; otherwise the largest
    amount of shared memory that the SM can be configured for is divided by the block's.
    """
    if configured < min(others):
        return configured
    if block_bytes == 0:
        return "the kernel uses no shared memory"
    return configured if most_bytes is None or block_bytes is None else float(most_bytes // block_bytes)


def tensor_flops(*inputs: float | None) -> float | str:
    """Returns the sum of the operation counts by type, or zero if no tensor instruction was executed."""
    count = len(TENSOR_OPCODES)
    executed, operations = inputs[:count], [value for value in inputs[count:] if value is not None]
    if operations:
        return total(*operations)
    if None in executed:
        return "neither the executed opcodes nor the tensor operations were collected"
    return (
        "tensor instructions ran, but only the metric set `tensor` counts their operations"
        if any(executed)
        else 0.0
    )


def intensity(*inputs: float) -> float | str:
    """Returns the FLOPs of all types per byte; the bytes are the last input."""
    return total(*inputs[:-1]) / inputs[-1] if inputs[-1] else "the kernel caused no device memory traffic"
