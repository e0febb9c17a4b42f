"""Combines the measurements of a case from several processes: the median over processes is the number."""

from collections.abc import Iterable, Sequence
from statistics import fmean, median

from msgspec.structs import replace

from warplog.core.statistics import summarise
from warplog.measure.power_limit import times_at_limit
from warplog.measure.results import AtRest, Result, Sustained
from warplog.measure.rounds import found_at_rest, missing
from warplog.measure.worker.timer import FULL_CLOCK
from warplog.records import time as records
from warplog.records.config import TimeSettings
from warplog.records.measured import worst
from warplog.records.remarks import (
    Discarded,
    FewSamples,
    HeldClock,
    HostTime,
    NoGraph,
    NotBlocked,
    TimeRemark,
)
from warplog.records.time import Board, Cold, Hot, NoSustained, Process, SustainedRun, TimeCase

_POWER_CAP = "sw_power_cap"


def missing_sustained(results: Sequence[Result], error: float, power_limit_w: float | None) -> int:
    """Returns how many more sustained runs the median over runs needs for a relative standard error of `error`."""
    if any(result.status != "ok" for result in results):
        return 0
    return missing([run.mean_us for run in _at_limit(results, power_limit_w).values()], error)


def pooled(
    rest: Sequence[Result],
    sustained: Sequence[Result],
    no_sustained: NoSustained,
    settings: TimeSettings,
    power_limit_w: float | None = None,
) -> TimeCase:
    """Returns the record's entry for a case from its results in each process, in order.

    The median of `cold`, the times at rest, is the median of the process medians; the other statistics are those of
    all samples, which stand one process after the other. So it is for `hot`; `sustained` is the median of the
    means, or of the times at the power limit if that acts (see power_limit).

    If the case failed in one process, its status is that failure, and it has no times.

    Args:
        rest: results at rest; at least one.
        sustained: sustained results; empty if no limit lowers the clock.
        no_sustained: why there are none.
        settings: the section `time` of the configuration.
        power_limit_w: the board's power limit; None if unknown.
    """
    everything = [*rest, *sustained]
    status = worst(result.status for result in everything)
    case, seconds = rest[0].run.case, sum(result.seconds or 0.0 for result in everything)
    if status != "ok":
        reason = next(result.reason for result in everything if result.status == status)
        return TimeCase(case=case, status=status, reason=reason, seconds=seconds)
    at_rest_of_each = found_at_rest(rest)
    first, cold = at_rest_of_each[0], _cold(at_rest_of_each)
    runs = _at_limit(sustained, power_limit_w)
    seconds_of = {result.run.process: result.seconds or 0.0 for result in sustained}
    processes = [
        _process(result, at_rest, runs.get(result.run.process), seconds_of.get(result.run.process, 0.0))
        for result, at_rest in zip(rest, at_rest_of_each, strict=True)
    ]
    numbers = {result.run.process for result in rest}
    return TimeCase(
        case=case,
        status="ok",
        reason="",
        seconds=round(seconds, 3),
        remarks=tuple(_remarks(at_rest_of_each, cold, settings)),
        warmup_launches=first.warmup_launches,
        first_launch_us=first.first_launch_us,
        launch_host_us=median(at_rest.launch_host_us for at_rest in at_rest_of_each),
        cold=cold,
        hot=_hot(at_rest_of_each) if first.hot else None,
        no_hot=first.no_hot,
        sustained=_sustained(sustained, list(runs.values())) if runs else None,
        no_sustained=no_sustained,
        processes=tuple(processes),
        further_sustained=tuple(run for number, run in runs.items() if number not in numbers),
        board=_board([at_rest.board for at_rest in at_rest_of_each]),
        max_error_over_scale=first.max_error_over_scale,
    )


def _cold(rest: Sequence[AtRest]) -> Cold:
    parts = [at_rest.cold for at_rest in rest]
    samples_us = tuple(us for part in parts for us in part.samples_us)
    clocks = tuple(mhz for part in parts for mhz in part.sm_mhz_samples)
    set_mhz = _known(part.set_mhz for part in parts)
    together = Cold(
        **vars(summarise(samples_us)),
        samples_us=samples_us,
        empty_us=median(part.empty_us for part in parts),
        discarded=sum(part.discarded for part in parts),
        not_blocked=sum(part.not_blocked for part in parts),
        sm_mhz_samples=clocks,
        sm_mhz=median(clocks) if clocks else None,
        set_mhz=median(set_mhz) if set_mhz else None,
    )
    return replace(together, median_us=median(part.median_us for part in parts))


def _hot(rest: Sequence[AtRest]) -> Hot:
    parts = [at_rest.hot for at_rest in rest if at_rest.hot]
    samples_us = tuple(us for part in parts for us in part.samples_us)
    launches, why_no_graph = sum(part.launches for part in parts), parts[0].uncaptured
    summary = vars(summarise(samples_us))
    together = Hot(**summary, samples_us=samples_us, launches=launches, uncaptured=why_no_graph)
    return replace(together, median_us=median(part.median_us for part in parts))


def _at_limit(results: Sequence[Result], power_limit_w: float | None) -> dict[int, SustainedRun]:
    """Returns the sustained runs by process, with the time at the power limit if it acts and can be told."""
    runs = {result.run.process: result.found.run for result in results if isinstance(result.found, Sustained)}
    acts = any(_POWER_CAP in run.limits for run in runs.values())
    times_us = times_at_limit([run.steps for run in runs.values()], power_limit_w) if acts else None
    if times_us is None:
        return runs
    return {
        number: replace(run, mean_us=us, measured_us=run.mean_us, at_power_w=power_limit_w)
        for (number, run), us in zip(runs.items(), times_us, strict=True)
    }


def _sustained(results: Sequence[Result], runs: Sequence[SustainedRun]) -> records.Sustained:
    """Returns the sustained time, clock, power, energy per launch and limits, and the trace of the first process."""
    first = results[0].found
    assert isinstance(first, Sustained)
    mean_us = median(run.mean_us for run in runs)
    power_w = runs[0].at_power_w or _mean(run.power_w for run in runs)
    return records.Sustained(
        mean_us=mean_us,
        at_power_w=runs[0].at_power_w,
        sm_mhz=_mean(run.sm_mhz for run in runs),
        power_w=power_w,
        energy_j=None if power_w is None else power_w * mean_us * 1e-6,
        limits=tuple(sorted({limit for run in runs for limit in run.limits})),
        launches=sum(run.launches for run in runs),
        seconds=sum(run.seconds for run in runs),
        samples_us=first.samples_us,
        trace=first.trace,
    )


def _board(states: Sequence[Board]) -> Board:
    """Returns the board's state at rest: medians over the processes, and extremes of all readings."""
    clocks, powers = _known(state.sm_mhz for state in states), _known(state.power_w for state in states)
    return Board(
        sm_mhz=median(clocks) if clocks else None,
        sm_mhz_min=min(_known(state.sm_mhz_min for state in states), default=None),
        sm_mhz_max=max(_known(state.sm_mhz_max for state in states), default=None),
        power_w=median(powers) if powers else None,
        power_w_max=max(_known(state.power_w_max for state in states), default=None),
        power_kind=states[0].power_kind,
        temperature_c=max(_known(state.temperature_c for state in states), default=None),
        throttle_reasons=tuple(sorted({reason for state in states for reason in state.throttle_reasons})),
        state_samples=sum(state.state_samples for state in states),
    )


def _process(
    result: Result, at_rest: AtRest, sustained: SustainedRun | None, sustained_seconds: float
) -> Process:
    cold = at_rest.cold
    return Process(
        process=result.run.process,
        seed=at_rest.seed,
        addresses=at_rest.addresses,
        median_us=cold.median_us,
        samples=cold.samples,
        discarded=cold.discarded,
        empty_us=cold.empty_us,
        pause_us=at_rest.pause_us,
        set_mhz=cold.set_mhz,
        hot_us=at_rest.hot.median_us if at_rest.hot else None,
        sustained=sustained,
        first_launch_us=at_rest.first_launch_us,
        seconds=(result.seconds or 0.0) + sustained_seconds,
    )


def _remarks(rest: Sequence[AtRest], cold: Cold, settings: TimeSettings) -> list[TimeRemark]:
    remarks: list[TimeRemark] = []
    if cold.samples < settings.min_samples:
        remarks.append(FewSamples(samples=cold.samples))
    if any(at_rest.held for at_rest in rest):
        remarks.append(HeldClock(mhz=cold.set_mhz))
    elif dropped := cold.discarded:
        below_mhz = FULL_CLOCK * max(at_rest.full_mhz or 0.0 for at_rest in rest)
        remarks.append(Discarded(dropped=dropped, taken=dropped + cold.samples, below_mhz=below_mhz))
    if waiting := cold.not_blocked:
        remarks.append(HostTime() if waiting == cold.samples else NotBlocked(samples=waiting))
    if any(at_rest.hot and at_rest.hot.uncaptured for at_rest in rest):
        remarks.append(NoGraph())
    return remarks


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Iterable[float | None]) -> float | None:
    present = _known(values)
    return fmean(present) if present else None
