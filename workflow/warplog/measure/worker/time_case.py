"""Times one case: warm-up, cold samples, hot graph, and a check of the results afterwards."""

import time
from typing import Any

from warplog.core import remarks, text
from warplog.core.statistics import summarise
from warplog.machine.clocks import Sampler
from warplog.measure.worker.backend import Backend, Launcher
from warplog.measure.worker.problem import Problem
from warplog.measure.worker.timer import (
    THROTTLED_BELOW,
    ColdSample,
    StopRule,
    Timer,
    cold_batch,
    hot_plan,
    is_held_back,
    sample_throughout,
    sample_until,
    unthrottled,
)

_SEED = 20_000


def time_case(
    backend: Backend,
    launcher: Launcher,
    timer: Timer,
    problem: Problem,
    settings: dict[str, Any],
    default_mhz: float,
) -> dict[str, Any]:
    """Returns the times of one case in microseconds; status 'wrong' without times if its results are wrong.

    Args:
        backend: for synchronising.
        launcher: the variant's launcher.
        timer: the timing core.
        problem: the case; filled with the inputs of a fixed seed.
        settings: the section `time` of the configuration.
        default_mhz: the GPU's maximum SM clock, which thresholds refer to.

    Raises:
        LaunchFailed: The launcher or the device reports an error.
    """
    rule, traced_s = _stop_rule(problem, settings), problem.family.measuring.hot_seconds
    problem.fill(_SEED)
    backend.synchronise()
    warm = timer.warm_up(launcher, problem.arguments, settings["warmup_launches"], settings["warmup_ms"])
    with Sampler() as sampler:
        batch = cold_batch(warm.fastest_us)
        samples = _samples(launcher, timer, problem, rule, batch, settings, default_mhz, sampler)
        estimate_us = min(s.event_us for s in samples) - timer.empty_us
        launches, replays = hot_plan(estimate_us, traced_s or settings["hot_seconds"])
        hot = (
            timer.hot(launcher, problem.arguments, launches, replays) if wants_hot(problem, settings) else []
        )
        ended_s = time.monotonic()
    if wrong := _recheck(backend, launcher, problem):
        return {"status": "wrong", "reason": f"after timing: {wrong}"}
    began_s = ended_s - sum(hot) * launches * 1e-6
    return {
        "status": "ok",
        "reason": _remark(samples, rule, default_mhz, timer.blocking),
        "warmup_launches": warm.launches,
        "first_launch_us": warm.first_us,
        "cold": _cold(samples, timer.empty_us, default_mhz),
        **({"hot": {**summarise(hot).as_record(hot), "launches": launches * replays}} if hot else {}),
        **sampler.result(),
        **({"trace": sampler.trace(began_s, ended_s)} if traced_s else {}),
    }


def _stop_rule(problem: Problem, settings: dict[str, Any]) -> StopRule:
    """Returns the configured stop rule; `measuring.max_seconds` of the family replaces the time limit."""
    seconds = problem.family.measuring.max_seconds or settings["max_seconds"]
    return StopRule(settings["min_samples"], settings["max_samples"], seconds, settings["rel_spread"])


def _samples(
    launcher: Launcher,
    timer: Timer,
    problem: Problem,
    rule: StopRule,
    batch: int,
    settings: dict[str, Any],
    default_mhz: float,
    sampler: Sampler,
) -> list[ColdSample]:
    """Takes the cold samples. A low clock gets time to settle; if a limit moves it, all the time is used."""

    def collect(count: int) -> list[ColdSample]:
        return timer.cold(launcher, problem.arguments, count)

    unused = [collect(min(batch, rule.max_samples))]
    if is_held_back(unused[0], default_mhz):
        if settings["settle_ms"]:
            timer.warm_up(launcher, problem.arguments, 1, settings["settle_ms"])
        if sampler.saw_limit():
            return sample_throughout(collect, rule, batch)
        unused.clear()
    return sample_until(lambda count: unused.pop() if unused else collect(count), rule, batch)


def wants_hot(problem: Problem, settings: dict[str, Any]) -> bool:
    """Returns whether the case gets a hot time: if profiled, listed in `hot_cases`, or if hot runs are long."""
    measuring = problem.family.measuring
    listed = problem.case.name in (*problem.family.profile_cases, *measuring.hot_cases)
    return bool(measuring.hot_seconds) or listed or settings["hot_cases"] == "all"


def _recheck(backend: Backend, launcher: Launcher, problem: Problem) -> str:
    problem.restore()
    backend.synchronise()
    launcher(problem.arguments)
    return problem.verdict().reason


def _cold(samples: list[ColdSample], empty_us: float, default_mhz: float) -> dict[str, Any]:
    kept, discarded = unthrottled(samples, default_mhz)
    corrected = [s.event_us - empty_us for s in kept]
    clocks = [s.sm_mhz for s in kept if s.sm_mhz]
    return {
        **summarise(corrected).as_record(corrected),
        "empty_us": empty_us,
        "discarded": discarded,
        "not_blocked": sum(not s.blocked for s in kept),
        "sm_mhz_samples": clocks,
        "sm_mhz": summarise(clocks).median_us if clocks else None,
    }


def _remark(samples: list[ColdSample], rule: StopRule, default_mhz: float, blocking: bool) -> str:
    found = []
    if len(samples) < rule.min_samples:
        found.append(remarks.of_samples(remarks.FEW_SAMPLES, len(samples), seconds=rule.max_seconds))
    kept, slow = unthrottled(samples, default_mhz)
    if slow:
        outcome = "kept" if len(kept) == len(samples) else "discarded"
        mhz = THROTTLED_BELOW * default_mhz
        found.append(remarks.of_samples(remarks.LOW_CLOCK, slow, mhz=mhz, outcome=outcome))
    if not blocking:
        found.append(remarks.HOST_TIME)
    elif waiting := sum(not s.blocked for s in samples):
        found.append(remarks.of_samples(remarks.NOT_BLOCKED, waiting))
    return text.join_notes(*found)
