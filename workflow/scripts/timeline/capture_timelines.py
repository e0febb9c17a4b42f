"""Captures the timelines of a family's variants with marks."""

from pathlib import Path
from typing import Any

from warplog.measure import job as jobs
from warplog.measure import timeline
from warplog.plan.script import job, values_of_family
from warplog.records.settings import TimelineSettings


def main(values: dict[str, Any], check: Path, timer: Path, marked: list[Path]) -> None:
    timeline.capture_timelines(jobs.make_jobs(TimelineSettings, **values), check, timer, marked)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            values_of_family(snakemake),
            Path(snakemake.input.check),
            Path(snakemake.input.timer),
            [Path(path) for path in snakemake.input.marked],
        )
