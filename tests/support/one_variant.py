"""Runs a measuring stage for a single variant and returns its record."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from warplog.machine.toolchain import Tool
from warplog.measure.job import Job
from warplog.measure.stages.check import check_family
from warplog.measure.stages.family_stage import Entry
from warplog.measure.stages.sanitize import sanitize_family
from warplog.measure.stages.timing import time_family
from warplog.records.check import Check
from warplog.records.config import CheckSettings, SanitizeSettings, TimeSettings
from warplog.records.family_file import FamilyRecord
from warplog.records.requested.sanitize import Sanitize
from warplog.records.time import Time

_T = TypeVar("_T")


def check_variant(job: Job[CheckSettings]) -> Check:
    check_family([job])
    return record_of(job, Check)


def time_variant(job: Job[TimeSettings], check_record: Path, timer: Path, cases: Sequence[str]) -> Time:
    job = _of_stage(job, "time")
    time_family([job], check_record, timer, cases)
    return record_of(job, Time)


def sanitize_variant(job: Job[SanitizeSettings], tool: Tool) -> Sanitize:
    job = _of_stage(job, "sanitize")
    sanitize_family([job], tool)
    return record_of(job, Sanitize)


def _of_stage(job: Job, stage: str) -> Job:
    """Returns the job with the record file of that stage: <results>/<stage>/<gpu>/<family>.json."""
    return replace(job, record=job.record.parents[2] / stage / job.gpu.slug / job.record.name)


def record_of(job: Job[Any], kind: type[Entry]) -> Entry:
    return FamilyRecord.read(job.record, kind).variants[job.variant.name]


def write_record(path: Path, *records: Entry) -> Path:
    """Writes a family's record file that contains these records of variants."""
    together = FamilyRecord(path, type(records[0]), {})
    for record in records:
        together.put(record)
    together.write()
    return path
