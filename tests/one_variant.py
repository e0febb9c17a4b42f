"""The measuring stages for a single variant, each with the record that it leaves."""

from collections.abc import Sequence
from pathlib import Path

from warplog.core.records import Record, read_json
from warplog.machine.toolchain import Tool
from warplog.measure import check_time, sanitize
from warplog.measure.job import Job


def check_variant(job: Job) -> Record:
    check_time.check_family([job])
    return _record(job)


def time_variant(job: Job, check_record: Path, timer: Path, cases: Sequence[str]) -> Record:
    check_time.time_family([job], [check_record], timer, cases)
    return _record(job)


def sanitize_variant(job: Job, tool: Tool) -> Record:
    sanitize.sanitize_family([job], tool)
    return _record(job)


def _record(job: Job) -> Record:
    record: Record = read_json(job.record)
    return record
