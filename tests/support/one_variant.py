"""Runs a measuring stage for a single variant and returns its record."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from warplog.core.records import FamilyRecord, Record
from warplog.machine.toolchain import Tool
from warplog.measure import check_time, sanitize
from warplog.measure.job import Job


def check_variant(job: Job) -> Record:
    check_time.check_family([job])
    return record_of(job)


def time_variant(job: Job, check_record: Path, timer: Path, cases: Sequence[str]) -> Record:
    job = _of_stage(job, "time")
    check_time.time_family([job], check_record, timer, cases)
    return record_of(job)


def sanitize_variant(job: Job, tool: Tool) -> Record:
    job = _of_stage(job, "sanitize")
    sanitize.sanitize_family([job], tool)
    return record_of(job)


def _of_stage(job: Job, stage: str) -> Job:
    """Returns the job with the record file of that stage: <results>/<stage>/<gpu>/<family>.json."""
    return replace(job, record=job.record.parents[2] / stage / job.gpu.slug / job.record.name)


def record_of(job: Job) -> Record:
    return FamilyRecord.read(job.record).variants[job.variant.name]


def write_record(path: Path, *records: Record) -> Path:
    """Writes a family's record file that contains these records of variants."""
    together = FamilyRecord(path, {})
    for record in records:
        together.put(record)
    together.write()
    return path
