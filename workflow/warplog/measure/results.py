"""What a worker says of a case: the supervisor reads it from the journal."""

from collections.abc import Mapping

from warplog.measure.task import CaseRun
from warplog.records.fields import Count, Frozen, Status
from warplog.records.requested.timeline import Overhead
from warplog.records.requested.tune import TunedCase
from warplog.records.time import Board, Cold, Hot, NoHot, SustainedRun, Trace


class LaunchFailed(Exception):
    """A case cannot be measured, as a launcher or the device says, or its results; status and reason of the record."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class _Found(Frozen, tag_field="mode", frozen=True, kw_only=True):
    """What a mode measures."""


class Checked(_Found, tag="check", frozen=True, kw_only=True):
    """Errors of the results in `rounds` rounds; None if one of them was wrong."""

    rounds: Count
    max_abs_error: float | None = None
    max_error_over_tolerance: float | None = None


class AtRest(_Found, tag="time", frozen=True, kw_only=True):
    """Times at rest in one process.

    Attributes:
        pause_us: the last pause between launches.
        held: whether the clock stayed low in spite of pauses, so that nothing was discarded.
        full_mhz: the SM clock without a limit; None if unknown.
        hot: None if this process measured no hot time; `no_hot` says why no process does.
        limited: whether a longer hot run lowered the clock.
        max_error_over_scale: of the results after timing; None if this process did not check them.
        seed, addresses: of the arrays.
    """

    warmup_launches: Count
    first_launch_us: float
    launch_host_us: float
    cold: Cold
    pause_us: float
    held: bool
    full_mhz: float | None
    hot: Hot | None
    no_hot: NoHot
    limited: bool
    board: Board
    max_error_over_scale: float | None = None
    seed: Count = 0
    addresses: tuple[Count, ...] = ()


class Sustained(_Found, tag="sustain", frozen=True, kw_only=True):
    """A sustained run; the times of its batches and the trace in the first process of a family with `hot_seconds`."""

    run: SustainedRun
    samples_us: tuple[float, ...] = ()
    trace: Trace | None = None


class Captured(_Found, tag="capture", frozen=True, kw_only=True):
    """Captured launches; under nsys with the time per launch by CUDA events, since tracing slows some kernels down."""

    launches: Count
    traced_us: float | None = None


class Marked(_Found, tag="timeline", frozen=True, kw_only=True):
    """A captured launch, whose buffer is in a file, and the times of both builds."""

    max_error_over_tolerance: float
    overhead: Overhead


class Accessed(_Found, tag="accesses", frozen=True, kw_only=True):
    """A traced launch, whose trace is in a file, and where its arrays were."""

    max_error_over_tolerance: float
    addresses: Mapping[str, Count]


class Compiled(_Found, tag="compile", frozen=True, kw_only=True):
    """The files that Triton made for each kernel of a launch."""

    launched: tuple[tuple[str, ...], ...]


class Tuned(_Found, tag="tune", frozen=True, kw_only=True):
    """The times of a setting."""

    cases: tuple[TunedCase, ...]


Found = Checked | AtRest | Sustained | Captured | Marked | Accessed | Compiled | Tuned


class Result(Frozen, tag_field="note", tag="result", frozen=True, kw_only=True):
    """The result of a case.

    Attributes:
        seconds: wall time; None if it did not run to its end.
        found: None unless the status is ok, except for the rounds of a wrong case.
    """

    run: CaseRun
    status: Status = "ok"
    reason: str = ""
    seconds: float | None = None
    found: Found | None = None
