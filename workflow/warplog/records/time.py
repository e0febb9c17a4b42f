"""Record of stage time: the times of a variant's cases at rest, hot and sustained, with all samples."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from warplog.records.config import TimeSettings
from warplog.records.fields import Count, Frozen, Number, Status, Text
from warplog.records.measured import Case, Measured, Session, only_if_ok
from warplog.records.remarks import TimeRemark

Traced = Annotated[tuple[float | None, ...], Meta(max_length=100_000)]
NoHot = Literal["", "not_captured", "not_recorded"]
NoSustained = Literal["", "no_hot", "not_limited", "not_near_fastest", "not_recorded"]


class Statistics(Frozen, frozen=True, kw_only=True):
    """Summary statistics and all samples of a time, in microseconds; rel_spread is (q3 - q1) / (1.349 median)."""

    median_us: float
    q1_us: float
    q3_us: float
    min_us: float
    max_us: float
    mean_us: float
    rel_spread: float
    samples: Count
    samples_us: Annotated[tuple[float, ...], Meta(min_length=1)]


class Cold(Statistics, frozen=True, kw_only=True):
    """Times at rest.

    Attributes:
        empty_us: the empty interval that was subtracted.
        discarded: launches that were discarded since a limit held the SM clock down.
        not_blocked: samples whose stream block timed out.
        sm_mhz: median over the samples of the mean SM clock during the kernel; None if it could not be read.
        set_mhz: median of the SM clock that was set just before the launches.
    """

    empty_us: float
    discarded: Count
    not_blocked: Count
    sm_mhz: float | None
    set_mhz: float | None
    sm_mhz_samples: tuple[float, ...]


class Hot(Statistics, frozen=True, kw_only=True):
    """Times of back-to-back launches; `uncaptured` says why they are no CUDA graph, "" if they are one."""

    launches: Count
    uncaptured: Text = ""


class Trace(Frozen, frozen=True, kw_only=True):
    """Clock and power readings; columns of equal length. time_s starts at the first launch of the run."""

    time_s: Annotated[tuple[float, ...], Meta(max_length=100_000)]
    sm_mhz: Traced
    power_w: Traced
    temperature_c: Traced
    energy_j: Annotated[Traced, Meta(description="Since the driver was loaded")]
    throttle_reasons: Annotated[tuple[Text, ...], Meta(max_length=100_000)]


class SustainedRun(Frozen, frozen=True, kw_only=True):
    """Back-to-back launches of one process for about a second, after as much time to settle.

    Attributes:
        mean_us: mean time per launch, or that at the power limit, `at_power_w`.
        measured_us: mean time per launch as measured, if mean_us is that at the power limit; else None.
        at_power_w: power limit that mean_us refers to; None if it is the time as measured.
        steps: mean power in W and mean time per launch in microseconds, between updates of the energy counter.
        sm_mhz: mean of the SM clock that was set.
        power_w: mean power of the board.
        energy_j: energy of the board per launch.
        limits: throttle reasons that lowered the clock.
    """

    mean_us: float
    measured_us: float | None = None
    at_power_w: float | None = None
    steps: Annotated[tuple[tuple[float, float], ...], Meta(max_length=10_000)] = ()
    sm_mhz: float | None
    power_w: float | None
    energy_j: float | None = None
    limits: tuple[Text, ...]
    launches: Count
    seconds: float


class Sustained(Frozen, frozen=True, kw_only=True):
    """The sustained time of a case: the median over the processes' means.

    Attributes:
        at_power_w: power limit that mean_us refers to; None if it is the time as measured.
        energy_j: energy of the board per launch.
        samples_us: time per launch of each batch in the first process, of families with `hot_seconds`; else ().
        trace: clock and power readings of the first process, of families with `hot_seconds`; else None.
    """

    mean_us: float
    at_power_w: float | None = None
    sm_mhz: float | None
    power_w: float | None
    energy_j: float | None
    limits: tuple[Text, ...]
    launches: Count
    seconds: float
    samples_us: Annotated[tuple[float, ...], Meta(max_length=100_000)] = ()
    trace: Trace | None = None


class Process(Frozen, frozen=True, kw_only=True):
    """What one of the processes contributed to a case.

    Attributes:
        process: number of the process, from 1.
        seed: seed of the addresses of the arrays.
        addresses: addresses of the arrays in the order of the arguments.
        median_us: median time at rest.
        samples: number of its samples in `cold`.
        pause_us: pause between launches.
        hot_us: median hot time; None if this process measured none.
        sustained: its sustained run; None if it had none.
    """

    process: Number
    seed: Count
    addresses: tuple[Count, ...]
    median_us: float
    samples: Count
    discarded: Count
    empty_us: float
    pause_us: float
    set_mhz: float | None
    hot_us: float | None = None
    sustained: SustainedRun | None = None
    first_launch_us: float
    seconds: float


class Board(Frozen, frozen=True, kw_only=True):
    """The board's state at rest: medians over the processes and extremes of all readings; None if not readable."""

    sm_mhz: float | None
    sm_mhz_min: float | None
    sm_mhz_max: float | None
    power_w: float | None
    power_w_max: float | None
    power_kind: Literal["", "instant", "average"]
    temperature_c: float | None
    throttle_reasons: tuple[Text, ...]
    state_samples: Annotated[Count, Meta(description="Number of clock and power readings")]


class TimeCase(Case, frozen=True, kw_only=True):
    """A timed case; everything below is None or empty unless the status is ok.

    Attributes:
        first_launch_us: time of the first launch, in which a launcher may compile or choose an algorithm.
        launch_host_us: median host time of the launcher until it has queued its work.
        no_hot, no_sustained: why there is no such time; "" if there is one, or the case is not ok. `not_recorded`: an
            earlier release did not write it.
            no_hot: `not_captured`: the profilers do not capture the case, and `hot_cases` does not ask for it.
            no_sustained: `no_hot`: no back-to-back launches show whether a limit acts; `not_limited`: none does;
            `not_near_fastest`: one does, but the profilers do not capture the case, and the variant is neither the
            baseline nor near the fastest one.
        further_sustained: runs of further processes that measured only the sustained time.
        max_error_over_scale: largest error of the results after timing, divided by the scale that reference.py
            returns; None if an earlier release did not write it.
    """

    remarks: Annotated[tuple[TimeRemark, ...], Meta(max_length=6)] = ()
    warmup_launches: Count | None = None
    first_launch_us: float | None = None
    launch_host_us: float | None = None
    cold: Cold | None = None
    hot: Hot | None = None
    no_hot: NoHot = ""
    sustained: Sustained | None = None
    no_sustained: NoSustained = ""
    processes: tuple[Process, ...] = ()
    further_sustained: tuple[SustainedRun, ...] = ()
    board: Board | None = None
    max_error_over_scale: float | None = None

    def __post_init__(self) -> None:
        """Checks that there are times if and only if the status is ok."""
        only_if_ok(self, "cold", "board", "warmup_launches", "first_launch_us", "launch_host_us")
        if bool(self.processes) != (self.status == "ok"):
            raise ValueError("processes: a case has them if and only if its status is ok")
        for name, time, why in (
            ("hot", self.hot, self.no_hot),
            ("sustained", self.sustained, self.no_sustained),
        ):
            if self.status == "ok" and (time is None) != bool(why):
                raise ValueError(f"no_{name}: says why there is no {name} time, and nothing else")

    @property
    def sustained_runs(self) -> Sequence[SustainedRun]:
        """The sustained runs, one per process; () if it was not measured sustained."""
        own = (process.sustained for process in self.processes)
        return (*(run for run in own if run is not None), *self.further_sustained)


class Time(Measured, tag="time", frozen=True, kw_only=True):
    """The times of a variant; `check` is the status of the check before timing."""

    check: Status
    cases: tuple[TimeCase, ...]
    session: Session
    settings: TimeSettings

    def __post_init__(self) -> None:
        """Checks that no case has a time without a passed check."""
        if self.check != "ok" and any(case.status == "ok" for case in self.cases):
            raise ValueError("cases: have times without a passed check")
