"""Stages check and time: one worker for all variants of a family; what must not be measured is refused.

A variant whose record says that it was made from the same inputs is left as it is.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warplog.core.records import Record, read_json, sha256_of, worst, write_json
from warplog.measure.job import Job, Refusal, family_task, own_results, refuse_build, refuse_unproven
from warplog.measure.supervise import discard, run_cases


class Measurement:
    """One stage of one variant: its cases, why it is refused, and what else its record says."""

    def __init__(
        self, job: Job, stage: str, cases: Sequence[str], refusal: Refusal | None, **more: Any
    ) -> None:
        self.job, self.stage, self.cases, self.refusal = job, stage, tuple(cases), refusal
        self.more = more
        contract = (dict(job.variant.memory), job.family.measuring)
        self.inputs_sha256 = sha256_of(
            stage, job.inputs_sha256, job.build, self.cases, refusal, more, contract
        )

    @property
    def runnable(self) -> tuple[str, ...]:
        """The cases that a worker is given."""
        return () if self.refusal else self.job.fitting(self.cases)

    def write(self, results: Mapping[str, Record], session: Record) -> Record:
        """The variant's record, from the results of its cases by name."""
        job = self.job
        entries = [job.entry(case, results, self.refusal) for case in self.cases]
        status, reason = self.refusal or _over_cases(entries)
        record = {
            **job.head(self.stage, job.build, session),
            "status": status,
            "reason": reason,
            "session": session,
            "settings": dict(job.settings),
            "cases": entries,
            "inputs_sha256": self.inputs_sha256,
            **self.more,
        }
        write_json(job.record, record, "record")
        return record


def check_family(jobs: Sequence[Job]) -> None:
    """Runs all check cases of all variants; a record's status is that of the first case that is not ok.

    Raises:
        WarplogError: a build record is missing, or the worker failed for a reason of its own.
    """
    wanted = [
        Measurement(job, "check", tuple(job.family.check_cases), refuse_build(job.build)) for job in jobs
    ]
    _measure(wanted, {"rounds": jobs[0].settings["rounds"]}, stop_at=("crashed", "timeout"))


def time_family(jobs: Sequence[Job], checks: Sequence[Path], timer: Path, cases: Sequence[str]) -> None:
    """Times the cases of the variants whose check passed; the other records say 'skipped' and why.

    Raises:
        WarplogError: a check or build record is missing, or the worker failed for a reason of its own.
    """
    wanted = []
    for job, path in zip(jobs, checks, strict=True):
        check = read_json(path, "record")
        refusal = refuse_unproven(check, job.build)
        wanted.append(Measurement(job, "time", cases, refusal, check=check["status"]))
    settings = {k: v for k, v in jobs[0].settings.items() if k != "timeout_s"}
    _measure(wanted, settings | {"default_mhz": jobs[0].gpu.max_sm_mhz}, timer=timer)


def _measure(
    wanted: Sequence[Measurement],
    settings: Mapping[str, Any],
    stop_at: tuple[str, ...] = (),
    timer: Path | None = None,
) -> None:
    """Writes the records of all; what a cut run had finished is taken from its journal."""
    fresh = [one for one in wanted if one.job.is_fresh(one.inputs_sha256)]
    for one in fresh:
        os.utime(one.job.record)
    stale = [one for one in wanted if one not in fresh]
    for one in stale:
        if not one.runnable:
            one.write({}, {})
    running = {one.job.variant.name: one for one in stale if one.runnable}
    if not running:
        return
    first = next(iter(running.values())).job
    stage = wanted[0].stage
    task = family_task([(one.job, one.runnable) for one in running.values()], stage, settings, timer=timer)
    say = first.progress(stage, len(task.cases))
    results, session = run_cases(task, first.settings["timeout_s"], say, stop_at)
    for name, one in running.items():
        one.write(own_results(name, results), session)
    discard(task.folder)


def _over_cases(entries: list[Record]) -> tuple[str, str]:
    """Status of a record: ok where all cases are that the variant supports, else that of the worst."""
    counted = [e for e in entries if e["status"] != "unsupported"]
    status = worst(e["status"] for e in counted)
    bad = next((e for e in counted if e["status"] == status != "ok"), None)
    return status, f"case {bad['case']}: {bad['reason']}" if bad else ""
