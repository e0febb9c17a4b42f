"""Times one case in one process: at rest (cold and hot), or sustained; with a check of the results afterwards."""

import time
from statistics import median

from msgspec.structs import replace

from warplog.core.statistics import summarise
from warplog.machine.clocks import Sampler
from warplog.measure.results import AtRest, LaunchFailed, Sustained
from warplog.measure.worker import sampling
from warplog.measure.worker.backend import Backend, Launcher
from warplog.measure.worker.case_data import SEEDS
from warplog.measure.worker.problem import Problem, Verdict
from warplog.measure.worker.sampling import ColdRun, StopRule
from warplog.measure.worker.timer import Timer
from warplog.records.config import TimeSettings
from warplog.records.time import Cold, Hot, NoHot, SustainedRun

_SEED = SEEDS["time"]
_FIRST = 1


def time_case(
    backend: Backend,
    launcher: Launcher,
    timer: Timer,
    problem: Problem,
    settings: TimeSettings,
    sampler: Sampler,
    process: int = _FIRST,
) -> AtRest:
    """Returns the times of one case at rest, in microseconds.

    The problem is filled with the inputs of a fixed seed.

    Args:
        backend: for synchronising.
        launcher: the variant's launcher.
        timer: the timing core.
        problem: the case.
        settings: the section `time` of the configuration.
        sampler: reads the board's state.
        process: number of this process, from 1; the first one checks the results and runs hot for long enough that
            a limit shows. Processes beyond the configured ones show the spread alone.

    Raises:
        LaunchFailed: The launcher or the device reports an error, the results are wrong, or the case is too short.
    """
    if process > settings.processes:
        settings = replace(settings, max_samples=settings.min_samples)
    fill(backend, problem)
    warm = timer.warm_up(launcher, problem.arguments, settings.warmup_launches, settings.warmup_ms)
    seconds = problem.family.measuring.max_seconds or settings.max_seconds
    rule = StopRule(settings.min_samples, settings.max_samples, seconds, settings.rel_error)
    begin_s = time.monotonic()
    run = sampling.sample_at_rest(timer, launcher, problem.arguments, rule, warm.fastest_us)
    cold = _cold(run, timer)
    if cold.median_us <= 0:
        took_us = cold.median_us + timer.empty_us
        raise LaunchFailed(
            "unsupported",
            f"too short to time: the median interval with its launch, {took_us:.4g} us, is not longer than the empty"
            f" one, {timer.empty_us:.4g} us",
        )
    host_us = launcher.host_us([sample.host_us for sample in run.kept])  # before launches are captured
    no_hot, hot = why_no_hot(problem, settings), None
    if not no_hot and process <= settings.processes:
        estimate_us = max(min(s.event_us for s in run.kept) - timer.empty_us, 0.1)
        seconds = settings.hot_seconds if process == _FIRST else 0.0
        hot = sampling.run_hot(timer, launcher, problem.arguments, estimate_us, seconds)
    board = sampler.result(begin_s)
    verdict = _recheck(backend, launcher, problem) if process == _FIRST else None
    if verdict and verdict.reason:
        raise LaunchFailed("wrong", f"after timing: {verdict.reason}")
    return AtRest(
        warmup_launches=warm.launches,
        first_launch_us=warm.first_us if launcher.prepared_us is None else launcher.prepared_us,
        launch_host_us=median(host_us),
        cold=cold,
        pause_us=run.pause_us,
        held=run.held,
        full_mhz=timer.full_mhz or None,
        hot=None if hot is None else _hot(hot),
        no_hot=no_hot,
        limited=hot is not None and hot.limited,
        board=board,
        max_error_over_scale=verdict.max_error_over_scale if verdict else None,
    )


def sustain_case(
    launcher: Launcher,
    timer: Timer,
    problem: Problem,
    sampler: Sampler,
    settle_s: float,
    process: int = _FIRST,
) -> Sustained:
    """Returns the sustained time of one case whose results were checked at rest; errors as for `time_case`.

    Args:
        launcher: the variant's launcher.
        timer: the timing core.
        problem: the case, filled with inputs.
        sampler: reads the board's state, with its energy.
        settle_s: seconds to run back to back before the measurement.
        process: number of this process, from 1; the first one measures a family with `hot_seconds` for that long.
    """
    long_s = problem.family.measuring.hot_seconds if process == _FIRST else None
    timer.warm_up(launcher, problem.arguments, 2, 0)
    # The host time of a warm-up launch says little if the launcher chose an algorithm in it.
    with timer.batch(launcher, problem.arguments, 1) as single:
        estimate_us = min(single.run(3)[0])
    run = sampling.run_sustained(
        timer,
        launcher,
        problem.arguments,
        sampler,
        estimate_us=estimate_us,
        settle_s=settle_s,
        least_s=long_s or sampling.SUSTAINED_LEAST_S,
    )
    mean = SustainedRun(
        mean_us=sum(run.samples_us) / len(run.samples_us),
        steps=tuple(run.steps),
        launches=run.launches * len(run.samples_us),
        seconds=run.end_s - run.begin_s,
        **vars(sampler.between(run.begin_s, run.end_s)),
    )
    if not long_s:
        return Sustained(run=mean)
    trace = sampler.trace(run.begin_s, run.end_s)
    return Sustained(run=mean, samples_us=tuple(run.samples_us), trace=trace)


def fill(backend: Backend, problem: Problem) -> None:
    """Stores the inputs of a fixed seed."""
    problem.fill(_SEED)
    backend.synchronise()


def why_no_hot(problem: Problem, settings: TimeSettings) -> NoHot:
    """Returns why the case gets no hot time; "" if it is profiled or listed in `hot_cases`, or if hot runs are long."""
    measuring = problem.family.measuring
    listed = problem.case.name in (*problem.family.profile_cases, *measuring.hot_cases)
    wanted = bool(measuring.hot_seconds) or listed or settings.hot_cases == "all"
    return "" if wanted else "not_captured"


def _recheck(backend: Backend, launcher: Launcher, problem: Problem) -> Verdict:
    problem.restore()
    backend.synchronise()
    launcher(problem.arguments)
    return problem.verdict()


def _hot(run: sampling.HotRun) -> Hot:
    summary = vars(summarise(run.samples_us))
    samples_us = tuple(run.samples_us)
    return Hot(**summary, samples_us=samples_us, launches=run.launches, uncaptured=run.uncaptured)


def _cold(run: ColdRun, timer: Timer) -> Cold:
    samples_us = tuple(s.event_us - timer.empty_us for s in run.kept)
    clocks = tuple(s.sm_mhz for s in run.kept if s.sm_mhz)
    set_clocks = [s.set_mhz for s in run.kept if s.set_mhz]
    return Cold(
        **vars(summarise(samples_us)),
        samples_us=samples_us,
        empty_us=timer.empty_us,
        discarded=run.discarded,
        not_blocked=sum(not s.blocked for s in run.kept),
        sm_mhz_samples=clocks,
        sm_mhz=summarise(clocks).median_us if clocks else None,
        set_mhz=summarise(set_clocks).median_us if set_clocks else None,
    )
