"""What must hold in the records of a variant, and between them; a result that violates it gets the status "error"."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import TypeVar

from msgspec.structs import replace

from warplog.core.statistics import summarise
from warplog.records.build import Build
from warplog.records.check import Check
from warplog.records.measured import Absent, Case
from warplog.records.profile import Profile
from warplog.records.requested.accesses import Accesses
from warplog.records.requested.timeline import Timeline, TimelineCase
from warplog.records.time import Process, Statistics, Time, TimeCase
from warplog.records.verification import marked_launch

# Statistics are written with all their digits; versions of NumPy may differ in the last ones.
_RELATIVE = 1e-9
_AGAIN = "time the variant again"
Stage = TypeVar("Stage", Time, Profile, Timeline, Accesses)
_Case = TypeVar("_Case", bound=Case)


def believed(stage: Stage, check: Check | Absent, build: Build | None = None) -> Stage:
    """Returns the record of a stage; what cannot be believed has status "error".

    Its cases then are without results; all other parts stay as they are. A case without results is not questioned.

    Args:
        build: the build record of the same campaign, if there is one.
    """
    return consistent(shown_correct(stage, check, build))


def shown_correct(stage: Stage, check: Check | Absent, build: Build | None = None) -> Stage:
    """Returns the record of a stage, with the status "error" and no results if `unproven` objects to it."""
    if not (reason := unproven(stage, check, build)):
        return stage
    cases = tuple(_failed(case, reason) if case.status == "ok" else case for case in stage.cases)
    return replace(stage, status="error", reason=reason, cases=cases)


def consistent(stage: Stage) -> Stage:
    """Returns the record of a stage, with the status "error" and no times in the cases that are `inconsistent`."""
    why = {case.case: reason for case in stage.cases if (reason := inconsistent(case))}
    if not why:
        return stage
    cases = tuple(
        _failed(case, f"{why[case.case]}; {_AGAIN}") if case.case in why else case for case in stage.cases
    )
    bad = next(case for case in cases if case.case in why)
    return replace(stage, status="error", reason=f"case {bad.case}: {bad.reason}", cases=cases)


def unproven(
    stage: Time | Profile | Timeline | Accesses, check: Check | Absent, build: Build | None = None
) -> str:
    """Returns why the results of a stage are not those of a checked library; "" if they are, or there are none.

    A check, and a build of the same source, must name the library that the stage ran. Timelines and traces compare the
    answers of their own launches with the reference, so that another build of the checked source, as another machine
    makes it, is as good.
    """
    if not any(case.status == "ok" for case in stage.cases):
        return ""
    if isinstance(check, Absent) or check.status != "ok":
        return f"its check has status {check.status}: {check.reason}; check the variant again"
    if isinstance(stage, Timeline | Accesses) and stage.source_sha256 == check.source_sha256:
        return ""
    library = stage.library_sha256
    if check.library_sha256 != library:
        return f"its check is of library {check.library_sha256[:12]}, its result of {library[:12]}; {_AGAIN}"
    same = build is not None and build.source_sha256 == stage.source_sha256
    if build is not None and same and build.library_sha256 not in ("", library):
        return (
            f"its build made library {build.library_sha256[:12]}, its result is of {library[:12]}; {_AGAIN}"
        )
    return ""


def inconsistent(case: Case) -> str:
    """Returns why the results of a case do not belong together; "" if they do.

    Every statistic must be that of the samples. With several processes, whose samples follow each other, the median of
    the case is that of the process medians, and the sustained time that of their means. Medians and means are above 0.
    A single sample need not be, since the empty interval is subtracted from it.
    """
    if isinstance(case, TimelineCase):
        return marked_launch.inconsistent(case)
    if not isinstance(case, TimeCase) or case.cold is None:
        return ""
    hot = [process.hot_us for process in case.processes if process.hot_us is not None]
    if why := _of_samples(case.cold, [process.median_us for process in case.processes]):
        return f"cold.{why}"
    if case.hot and (why := _of_samples(case.hot, hot)):
        return f"hot.{why}"
    if why := _of_processes(case.cold.samples_us, case.processes):
        return why
    if run := case.sustained:
        means = [sustained.mean_us for sustained in case.sustained_runs]
        if means and (why := _differs("mean_us", run.mean_us, median(means), "its processes give")):
            return f"sustained.{why}"
        if run.mean_us <= 0:
            return f"sustained.mean_us is {run.mean_us:g}, not above 0"
    return ""


def _of_samples(summary: Statistics, medians: Sequence[float]) -> str:
    expected = asdict(summarise(summary.samples_us))
    if medians:
        del expected["median_us"]
        if why := _differs("median_us", summary.median_us, median(medians), "its processes give"):
            return why
    for name, value in expected.items():
        if why := _differs(name, getattr(summary, name), value, "its samples give"):
            return why
    return "" if summary.median_us > 0 else f"median_us is {summary.median_us:g}, not above 0"


def _of_processes(samples_us: Sequence[float], processes: Sequence[Process]) -> str:
    counted = sum(process.samples for process in processes)
    if counted != len(samples_us):
        return f"its processes have {counted} samples, the case has {len(samples_us)}"
    start = 0
    for number, process in enumerate(processes, 1):
        part = samples_us[start : start + process.samples]
        start += process.samples
        if part and (why := _differs("median_us", process.median_us, median(part), "its samples give")):
            return f"processes.{number}.{why}"
        if part and process.median_us <= 0:
            return f"processes.{number}.median_us is {process.median_us:g}, not above 0"
    return ""


def _differs(name: str, value: float, expected: float, where: str) -> str:
    if math.isclose(value, expected, rel_tol=_RELATIVE, abs_tol=_RELATIVE):
        return ""
    return f"{name} is {value:.7g}, {where} {expected:.7g}"


def _failed(case: _Case, reason: str) -> _Case:
    return type(case)(case=case.case, status="error", reason=reason, seconds=case.seconds)
