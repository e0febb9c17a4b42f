"""Record of stage extract: metrics, hot lines and loops, trace and launches, from both profilers' reports."""

from typing import Annotated, Literal

from msgspec import Meta, field

from warplog.records.fields import CaseName, Count, Frozen, Sha256, Status, Text, Tool
from warplog.records.measured import OfGpu

MOST_INSTRUCTIONS = 5000  # of a loop; the largest that was seen, of a GEMM of 128 x 256 x 16, has 4448
MOST_LOOPS = 2  # of a launch
Stream = Annotated[int, Meta(ge=-1, le=2**63 - 1)]


class Capture(Frozen, frozen=True, kw_only=True):
    """State and hash of a capture; sha256 is "" if there is no report."""

    tool: Tool
    tool_version: Text
    status: Status
    sha256: Sha256


class MetricRow(Frozen, frozen=True, kw_only=True):
    """The value of a metric of one launch of a kernel; `kernel` is "" for the whole launch of the variant."""

    case: CaseName
    kernel: Text
    launch: Count
    metric: str
    value: float | None
    unit: str
    status: Status
    reason: Text
    tool: Tool
    tool_version: Text

    def __post_init__(self) -> None:
        """Checks that there is a value if and only if the status is ok."""
        if (self.value is not None) != (self.status == "ok"):
            raise ValueError(f"{self.metric}: has a value if and only if its status is ok")


class HotLine(Frozen, frozen=True, kw_only=True):
    """A hot source line of a launch.

    Attributes:
        text: the source text.
        sample_share: share of the launch's samples; instruction_share: of its instructions.
        instructions: executed warp-level instructions.
        stall: most frequent stall reason at the line.
    """

    case: CaseName
    kernel: Text
    launch: Count
    file: Text
    line: Count
    text: Text
    samples: float
    sample_share: float | None
    instructions: float
    instruction_share: float | None
    shared_wavefronts_excess: float
    stall: str
    stall_samples: float


class LoopInstruction(Frozen, frozen=True, array_like=True):
    """An instruction of a hot loop, as a list, since there are thousands."""

    offset: Annotated[Count, Meta(description="Bytes from the kernel's first instruction")]
    text: Annotated[str, Meta(max_length=500, description="As disassembled; targets of branches are offsets")]
    executed: Annotated[Count, Meta(description="How often warps executed it")]
    samples: Annotated[Count, Meta(description="Warp samples at it, in any state")]
    stall: Annotated[str, Meta(description="Most frequent stall reason at it; empty without samples")]
    stall_samples: Count
    file: Annotated[Text, Meta(description="Source file; empty if it is not known")]
    line: Annotated[Count, Meta(description="From 1; 0 if it is not known")]


class HotLoop(Frozen, frozen=True, kw_only=True):
    """A loop with many of the samples of the longest kernel of a case, without the loops in it.

    Attributes:
        iterates: false for the code outside of all loops, which is kept if it has more samples than any loop.
        kernel_samples: warp samples of the whole kernel.
        iterations: how often warps began an iteration, or the kernel if it does not iterate.
    """

    case: CaseName
    kernel: Text
    launch: Count
    iterates: bool
    kernel_samples: Count
    iterations: Count
    instructions: Annotated[tuple[LoopInstruction, ...], Meta(min_length=1, max_length=MOST_INSTRUCTIONS)]


class Event(Frozen, frozen=True, kw_only=True):
    """A kernel, copy, fill or API call in the trace of nsys; `launch` is its index within the case, from 0."""

    case: CaseName
    name: Text
    kind: Literal["kernel", "memcpy", "memset", "api"]
    start_us: float
    duration_us: Annotated[float, Meta(ge=0)]
    stream: Stream | None
    launch: Count | None


class Launched(Frozen, frozen=True, kw_only=True):
    """Launch configuration of a distinct kernel of a case; `order` is its position within a launch of the variant.

    shared_bytes is static and dynamic shared memory, without the driver's share.
    """

    case: CaseName
    order: Count
    kernel: Text
    grid: tuple[Count, Count, Count]
    block: tuple[Count, Count, Count]
    registers_per_thread: Count
    shared_bytes: Count


class Extract(OfGpu, tag="extract", frozen=True, kw_only=True):
    """What both captures of a variant contain.

    Attributes:
        loops: of each case, the hottest first; null if an earlier release extracted it, which did not record them.
    """

    captures: tuple[Capture, ...]
    rows: tuple[MetricRow, ...]
    lines: tuple[HotLine, ...]
    trace: tuple[Event, ...] = field(name="timeline")
    kernels: tuple[Launched, ...]
    loops: tuple[HotLoop, ...] | None = None
