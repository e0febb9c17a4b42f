"""Record of stage timeline: what the warps of one SM did during one launch of a variant built with marks."""

from typing import Annotated

from msgspec import Meta

from warplog.records.config import TimelineSettings
from warplog.records.fields import Count, Frozen, Number, Sha256
from warplog.records.measured import Case, Measured, Session, only_if_ok

Samples = Annotated[tuple[float, ...], Meta(min_length=1, max_length=10_000)]
Region = Annotated[int, Meta(ge=0, le=7)]


class Overhead(Frozen, frozen=True, kw_only=True):
    """Times at rest of the build without marks, of that with marks, and of the first one again, taken in turns.

    Attributes:
        overhead_pct: marked_us over the mean of the other two, minus 1.
        noise_pct: again_us over plain_us, minus 1, without its sign.
    """

    plain_us: float
    marked_us: float
    again_us: float
    plain_samples_us: Samples
    marked_samples_us: Samples
    again_samples_us: Samples
    overhead_pct: float
    noise_pct: float


class Track(Frozen, frozen=True, kw_only=True):
    """What one warp did, in clocks since the first warp of the SM started.

    Attributes:
        warp: number of the warp in its block.
        slot: place of the block on the SM; blocks in one slot follow each other.
        lost: events for which the buffer had no room.
        starts: clock at which each region begins.
        regions: 0 none, 1 load, 2 wait, 3 compute, 4 store, 5 handover, 6 lookback, 7 sync.
    """

    block: Count
    warp: Count
    slot: Count
    begin: Count
    end: Count
    lost: Count
    starts: Annotated[tuple[Count, ...], Meta(max_length=1_000_000)]
    regions: Annotated[tuple[Region, ...], Meta(max_length=1_000_000)]


class Launch(Frozen, frozen=True, kw_only=True):
    """One launch of the build with marks, and all warps of one SM.

    Attributes:
        sm: the SM of `tracks`: the one whose share of waiting is the median over the SMs.
        sms: SMs on which a marked warp ran.
        origin_us: start of the first warp of the SM, since the start of the launch's first one.
        sm_mhz: clocks of the SM per microsecond during the launch.
        step_ns: step of the timer that all SMs share.
        span_us: from the start of the first warp to the end of the last one.
        threads: threads per block.
        warps: warps with events on all SMs.
        events: events of all SMs.
        lost_events, lost_warps: those for which the buffer had no room.
        wait_pct: smallest, median and largest share of waiting over the SMs.
    """

    sm: Count
    sms: Number
    origin_us: float
    sm_mhz: Annotated[float, Meta(gt=0)]
    step_ns: Count
    span_us: float
    blocks: Count
    threads: Count
    warps: Number
    events: Count
    lost_events: Count
    lost_warps: Count
    wait_pct: tuple[float, float, float]
    tracks: Annotated[tuple[Track, ...], Meta(min_length=1, max_length=10_000)]


class TimelineCase(Case, frozen=True, kw_only=True):
    """The captured case; what is below is None unless the status is ok."""

    max_error_over_tolerance: float | None = None
    overhead: Overhead | None = None
    launch: Launch | None = None

    def __post_init__(self) -> None:
        """Checks that there are results if and only if the status is ok."""
        only_if_ok(self, "max_error_over_tolerance", "overhead", "launch")


class Timeline(Measured, tag="timeline", frozen=True, kw_only=True):
    """The timeline of a variant; `marked_sha256` is the library with the marks, library_sha256 the one without."""

    marked_sha256: Sha256
    cases: tuple[TimelineCase, ...]
    session: Session
    settings: TimelineSettings
