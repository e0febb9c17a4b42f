"""What a metric is, and the arithmetic that most of them share."""

from collections.abc import Callable
from dataclasses import dataclass

from warplog.metrics.names import TENSOR_OPCODES

Formula = Callable[..., float | str]


@dataclass(frozen=True)
class Metric:
    """One number about a kernel, and how to compute it from a profiler's counters.

    `counters` are the inputs of `formula`, in its argument order. Each is one of:

    - `a|b`: a raw counter of ncu; the first of the alternatives that the report holds is taken,
    - `base:KEY`: one entry of a counter with named entries, such as the executed instructions per opcode
      (an opcode that does not occur counts 0 where the counter itself is there),
    - `@name`: a metric that stands earlier in the registry,

    and a `?` at the end marks an input that may be absent (the formula then gets None). A formula returns
    the value in `unit`, or a sentence that says why there is none.

    A metric without counters comes from another tool (`ptxas`, `cuobjdump`, `nsys`).
    `group` is where the metric appears in MLflow.
    """

    name: str
    unit: str
    group: str
    counters: tuple[str, ...]
    formula: Formula | None
    description: str


def same(value: float) -> float:
    """The counter is the metric."""
    return value


def times(factor: float) -> Formula:
    """The counter in another unit."""

    def scaled(value: float) -> float:
        return value * factor

    return scaled


def total(*values: float | None) -> float:
    """The sum; inputs that may be absent count nothing."""
    return float(sum(value for value in values if value is not None))


def quotient(nothing: str) -> Formula:
    """`numerator / denominator`; `nothing` is said where the denominator is zero."""

    def divided(numerator: float, denominator: float) -> float | str:
        return numerator / denominator if denominator else nothing

    return divided


def difference(minuend: float, subtrahend: float) -> float:
    """`minuend - subtrahend`."""
    return minuend - subtrahend


def share_pct(part: float, *parts: float | None) -> float | str:
    """`part` in percent of the sum of `parts`, which include it."""
    whole = total(*parts)
    return 100.0 * part / whole if whole else "no warp was ever active"


def flops(add: float, multiply: float, fused: float) -> float:
    """Floating-point operations of scalar thread instructions; a fused multiply-add counts two."""
    return add + multiply + 2.0 * fused


def fp32_flops(*counts: float | None) -> float:
    """Scalar add, multiply, fused, then their packed forms, which work on two values at once."""
    add, multiply, fused, add2, multiply2, fused2 = (count or 0.0 for count in counts)
    return flops(add, multiply, fused) + 2.0 * flops(add2, multiply2, fused2)


def fp16_flops(add: float, multiply: float, fused: float) -> float:
    """Half-precision instructions work on two packed values."""
    return 2.0 * flops(add, multiply, fused)


def whole_or_parts(whole: float | None, *parts: float | None) -> float | str:
    """The counter of the whole, else the sum of all its parts."""
    if whole is not None:
        return whole
    known = [part for part in parts if part is not None]
    return (
        total(*known)
        if len(known) == len(parts)
        else "neither the total nor both of its parts were collected"
    )


def gbytes_per_s(
    per_second: float | None, moved_bytes: float | None, duration_us: float | None
) -> float | str:
    """The counter's own rate, else bytes over the duration; 1 GB is 10^9 bytes."""
    if per_second is not None:
        return per_second * 1e-9
    if moved_bytes is None or not duration_us:
        return "neither the rate nor bytes and duration were collected"
    return moved_bytes / duration_us * 1e-3


def shared_memory_limit(
    configured: float, most_bytes: float | None, block_bytes: float | None, *others: float
) -> float | str:
    """Blocks per SM by shared memory, freed of a habit of the driver.

    The driver configures just enough shared memory for the blocks that other resources allow, and ncu since
    2022 divides that amount: the quotient ties with the real limiter without being one. So it counts only
    where it lies below all `others`; else the most that the SM can be configured to is divided.
    """
    if configured < min(others):
        return configured
    if block_bytes == 0:
        return "the kernel uses no shared memory"
    return configured if most_bytes is None or block_bytes is None else float(most_bytes // block_bytes)


def tensor_flops(*inputs: float | None) -> float | str:
    """Zero where no tensor instruction ran; else the sum of the operation counts by type."""
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
    """FLOP of all kinds over the bytes, which come last."""
    return total(*inputs[:-1]) / inputs[-1] if inputs[-1] else "the kernel moved no byte of device memory"
