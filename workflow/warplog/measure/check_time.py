"""Stages check and time: one worker runs all variants of a family.

Variants that must not be measured get a record with the reason. Records with unchanged inputs are kept.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warplog.core.records import Record, sha256_of, worst
from warplog.measure.job import (
    Job,
    Refusal,
    family_task,
    keep,
    own_results,
    proofs,
    refuse_build,
    refuse_unproven,
)
from warplog.measure.supervise import discard, run_cases


class Measurement:
    """One stage of one variant.

    Args:
        job: the variant's job.
        stage: check or time.
        cases: names of the cases.
        refusal: status and reason if the variant must not be measured, else None.
        more: further keys of the record.
    """

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
        """The cases that the worker runs: the supported ones; none if the variant is refused."""
        return () if self.refusal else self.job.fitting(self.cases)

    def record(self, results: Mapping[str, Record], session: Record) -> Record:
        """Returns the variant's record, given the results by case."""
        job = self.job
        entries = [job.entry(case, results, self.refusal) for case in self.cases]
        status, reason = self.refusal or _over_cases(entries)
        return {
            **job.head(self.stage, job.build, session),
            "status": status,
            "reason": reason,
            "session": session,
            "settings": dict(job.settings),
            "cases": entries,
            "inputs_sha256": self.inputs_sha256,
            **self.more,
        }


def check_family(jobs: Sequence[Job]) -> None:
    """Runs all check cases of all variants; a record has the status of its first supported case that is not ok.

    Raises:
        WarplogError: A build record is missing, or the worker failed for a reason other than a kernel.
    """
    stages = [
        Measurement(job, "check", tuple(job.family.check_cases), refuse_build(job.build)) for job in jobs
    ]
    _measure(stages, {"rounds": jobs[0].settings["rounds"]}, stop_at=("crashed", "timeout"))


def time_family(jobs: Sequence[Job], check: Path, timer: Path, cases: Sequence[str]) -> None:
    """Times the variants whose checks passed; the records of the others state the reason.

    Args:
        jobs: the variants of one family.
        check: the family's check records.
        timer: the compiled timing core.
        cases: names of the cases to time.

    Raises:
        WarplogError: A check or build record is missing, or the worker failed for a reason other than a kernel.
    """
    _measure(_timing(jobs, check, cases), _time_settings(jobs[0]), timer=timer)


def time_round(jobs: Sequence[Job], check: Path, timer: Path, cases: Sequence[str]) -> None:
    """Times the variants one after the other, each in a separate process: one A/A round.

    Conditions that all cases of a process share, such as memory addresses, thus become part of the noise.

    Raises:
        WarplogError: As for `time_family`.
    """
    for one in _timing(jobs, check, cases):
        _measure([one], _time_settings(one.job), timer=timer)


def _timing(jobs: Sequence[Job], check: Path, cases: Sequence[str]) -> list[Measurement]:
    return [
        Measurement(job, "time", cases, refuse_unproven(proof, job.build), check=proof["status"])
        for job, proof in zip(jobs, proofs(check, jobs), strict=True)
    ]


def _time_settings(job: Job) -> dict[str, Any]:
    policy = {key: value for key, value in job.settings.items() if key != "timeout_s"}
    return policy | {"default_mhz": job.gpu.max_sm_mhz}


def _measure(
    stages: Sequence[Measurement],
    settings: Mapping[str, Any],
    stop_at: tuple[str, ...] = (),
    timer: Path | None = None,
) -> None:
    """Measures variants with changed inputs and writes their records; resumes an interrupted run."""
    stale = [one for one in stages if not one.job.is_fresh(one.inputs_sha256)]
    running = {one.job.variant.name: one for one in stale if one.runnable}
    made = [one.record({}, {}) for one in stale if not one.runnable]
    if not running:
        keep(stages[0].job, made)
        return
    first = next(iter(running.values())).job
    stage = stages[0].stage
    task = family_task([(one.job, one.runnable) for one in running.values()], stage, settings, timer=timer)
    show = first.progress(stage, len(task.cases))
    results, session = run_cases(task, first.settings["timeout_s"], show, stop_at)
    made += [one.record(own_results(name, results), session) for name, one in running.items()]
    keep(first, made)
    discard(task.folder)


def _over_cases(entries: list[Record]) -> tuple[str, str]:
    """Returns status and reason of the first supported case that is not ok; skipped cases come last."""
    counted = [e for e in entries if e["status"] != "unsupported"]
    status = worst(e["status"] for e in counted)
    bad = next((e for e in counted if e["status"] == status != "ok"), None)
    return status, f"case {bad['case']}: {bad['reason']}" if bad else ""
