"""Stages check and time: a worker's case results become records; what must not be measured is refused."""

from pathlib import Path
from typing import Any

from warplog.gpu_lock import hold
from warplog.jobs import Job, Refusal, refuse_build, refuse_unproven
from warplog.records import Record, read_json, worst, write_json
from warplog.supervise import Task, discard, run_cases


def check_variant(job: Job) -> Record:
    """Runs all check cases; the record's status is that of the first case that is not ok."""
    cases = tuple(job.family.check_cases)
    refusal = refuse_build(job.build)
    task = None if refusal else job.task("check", job.fitting(cases), {"rounds": job.settings["rounds"]})
    return _measure(job, "check", cases, task, refusal, stop_at=("crashed", "timeout"))


def time_variant(job: Job, check_record: Path, timer: Path, cases: tuple[str, ...]) -> Record:
    """Times the cases of a variant whose check passed; else the record says 'skipped' and why.

    Raises:
        WarplogError: the check or build record is missing, or the worker failed for a reason of its own.
    """
    check = read_json(check_record, "record")
    refusal = refuse_unproven(check, job.build)
    settings = {k: v for k, v in job.settings.items() if k != "timeout_s"}
    settings |= {"default_mhz": job.gpu.max_sm_mhz}
    task = None if refusal else job.task("time", job.fitting(cases), settings, timer=timer)
    return _measure(job, "time", cases, task, refusal, check=check["status"])


def _measure(
    job: Job,
    stage: str,
    cases: tuple[str, ...],
    task: Task | None,
    refusal: Refusal | None,
    stop_at: tuple[str, ...] = (),
    **more: Any,
) -> Record:
    found: list[Record] = []
    session: Record = {}
    if task is not None:
        with hold(job.gpu.uuid):
            say = job.progress(stage, len(task.cases))
            found, session = run_cases(task, job.settings["timeout_s"], say, stop_at)
    results = {r["case"]: r for r in found}
    entries = [job.entry(case, results, refusal) for case in cases]
    status, reason = refusal or _over_cases(entries)
    record = {
        **job.head(stage, job.build, session),
        "status": status,
        "reason": reason,
        "session": session,
        "settings": dict(job.settings),
        "cases": entries,
        **more,
    }
    write_json(job.record, record, "record")
    discard(job.scratch)
    return record


def _over_cases(entries: list[Record]) -> tuple[str, str]:
    """Status of a record: ok where all cases are that the variant supports, else that of the worst."""
    counted = [e for e in entries if e["status"] != "unsupported"]
    status = worst(e["status"] for e in counted)
    bad = next((e for e in counted if e["status"] == status != "ok"), None)
    return status, f"case {bad['case']}: {bad['reason']}" if bad else ""
