"""Runs a measuring stage for a single variant and returns its record."""

from collections.abc import Sequence
from pathlib import Path

from warplog.core.records import FamilyRecord, Record
from warplog.machine.toolchain import Tool
from warplog.measure import check_time, sanitize
from warplog.measure.job import Job


def check_variant(job: Job) -> Record:
    check_time.check_family([job])
    return record_of(job)


def time_variant(job: Job, check_record: Path, timer: Path, cases: Sequence[str]) -> Record:
    check_time.time_family([job], check_record, timer, cases)
    return record_of(job)


def sanitize_variant(job: Job, tool: Tool) -> Record:
    sanitize.sanitize_family([job], tool)
    return record_of(job)


def record_of(job: Job) -> Record:
    return FamilyRecord.read(job.record).variants[job.variant.name]


def write_record(path: Path, *records: Record) -> Path:
    """Writes a family's record file that contains these records of variants."""
    together = FamilyRecord(path, {})
    for record in records:
        together.put(record)
    together.write()
    return path
