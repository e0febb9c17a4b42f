"""Captures the timelines of a family's variants with marks."""

from pathlib import Path

from warplog.measure.stages import timeline
from warplog.plan.jobs import TimelineJob
from warplog.plan.script import family_jobs, job, parameters

if "snakemake" in globals():
    with job(snakemake.log[0]):
        timeline.capture_timelines(
            family_jobs(snakemake, parameters(snakemake, TimelineJob)),
            Path(snakemake.input.check),
            Path(snakemake.input.timer),
            [Path(path) for path in snakemake.input.marked],
        )
