"""What must hold in the records of a variant, and between them; a result that violates it gets the status "error"."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from warplog.core.records import Record, sustained_runs
from warplog.core.statistics import summarise
from warplog.core.verification import timelines

# Statistics are written with all their digits; versions of NumPy may differ in the last ones.
_RELATIVE = 1e-9
_AGAIN = "time the variant again"


def believed(stage: Record, check: Record, build: Record | None = None) -> Record:
    """Returns the record of a stage (time, profile, timeline, extract); what cannot be believed has status "error".

    Its cases then are without results; all other parts stay as they are. A case without results is not questioned.

    Args:
        check: the check record of the variant; its status is "missing" if there is none.
        build: the build record of the same campaign, if there is one.
    """
    return consistent(shown_correct(stage, check, build))


def shown_correct(stage: Record, check: Record, build: Record | None = None) -> Record:
    """Returns the record of a stage, with the status "error" and no results if `unproven` objects to it."""
    if reason := unproven(stage, check, build):
        cases = [_failed(case, reason) if case["status"] == "ok" else case for case in stage["cases"]]
        return {**stage, "status": "error", "reason": reason, "cases": cases}
    return stage


def consistent(stage: Record) -> Record:
    """Returns the record of a stage, with the status "error" and no times in the cases that are `inconsistent`."""
    cases = [_believed_case(case) for case in stage["cases"]]
    bad = next((new for old, new in zip(stage["cases"], cases, strict=True) if new is not old), None)
    head = {"status": "error", "reason": f"case {bad['case']}: {bad['reason']}"} if bad else {}
    return {**stage, **head, "cases": cases}


def unproven(stage: Record, check: Record, build: Record | None = None) -> str:
    """Returns why the results of a stage are not those of a checked library; "" if they are, or there are none.

    A check, and a build of the same source, must name the library that the stage ran.
    """
    if not any(case["status"] == "ok" for case in stage["cases"]):
        return ""
    if check["status"] != "ok":
        return f"its check has status {check['status']}: {check['reason']}; check the variant again"
    library = stage["library_sha256"]
    if check["library_sha256"] != library:
        return (
            f"its check is of library {check['library_sha256'][:12]}, its result of {library[:12]}; {_AGAIN}"
        )
    same = build is not None and build.get("source_sha256") == stage["source_sha256"]
    if build is not None and same and build.get("library_sha256", library) != library:
        return f"its build made library {build['library_sha256'][:12]}, its result is of {library[:12]}; {_AGAIN}"
    return ""


def inconsistent(case: Mapping[str, Any]) -> str:
    """Returns why the times of a case do not belong together; "" if they do.

    Every statistic must be that of the samples. With several processes, whose samples follow each other, the median of
    the case is that of the process medians, and the sustained time that of their means. Medians and means are above 0.
    """
    processes = case["processes"]
    for name in ("cold", "hot"):
        if summary := case.get(name):
            key = {"cold": "median_us", "hot": "hot_us"}[name]
            medians = [one[key] for one in processes if key in one]
            if why := _of_samples(summary, medians):
                return f"{name}.{why}"
    if why := _of_processes(case["cold"]["samples_us"], processes):
        return why
    if run := case.get("sustained"):
        means = [one["mean_us"] for one in sustained_runs(case)]
        if means and (why := _differs("mean_us", run["mean_us"], median(means), "its processes give")):
            return f"sustained.{why}"
        if run["mean_us"] <= 0:
            return f"sustained.mean_us is {run['mean_us']:g}, not above 0"
    return ""


def _of_samples(summary: Mapping[str, Any], medians: Sequence[float]) -> str:
    expected = asdict(summarise(summary["samples_us"]))
    if medians:
        del expected["median_us"]
        if why := _differs("median_us", summary["median_us"], median(medians), "its processes give"):
            return why
    for name, value in expected.items():
        if why := _differs(name, summary[name], value, "its samples give"):
            return why
    return "" if summary["median_us"] > 0 else f"median_us is {summary['median_us']:g}, not above 0"


def _of_processes(samples_us: Sequence[float], processes: Sequence[Mapping[str, Any]]) -> str:
    counted = sum(one["samples"] for one in processes)
    if counted != len(samples_us):
        return f"its processes have {counted} samples, the case has {len(samples_us)}"
    start = 0
    for number, one in enumerate(processes, 1):
        part = samples_us[start : start + one["samples"]]
        start += one["samples"]
        if part and (why := _differs("median_us", one["median_us"], median(part), "its samples give")):
            return f"processes.{number}.{why}"
    return ""


def _differs(name: str, found: float, expected: float, where: str) -> str:
    if math.isclose(found, expected, rel_tol=_RELATIVE, abs_tol=_RELATIVE):
        return ""
    return f"{name} is {found:.7g}, {where} {expected:.7g}"


def _believed_case(case: Record) -> Record:
    why = ""
    if case["status"] == "ok" and "cold" in case:
        why = inconsistent(case)
    elif case["status"] == "ok" and "launch" in case:
        why = timelines.inconsistent(case)
    return _failed(case, f"{why}; {_AGAIN}") if why else case


def _failed(case: Record, reason: str) -> Record:
    kept: Record = {key: case[key] for key in ("case", "seconds") if key in case}
    return {**kept, "status": "error", "reason": reason}
