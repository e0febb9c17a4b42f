"""Captures the timelines of a family's variants with marks."""

from pathlib import Path

from warplog.measure.stages import timeline
from warplog.plan.jobs import TimelineJob
from warplog.plan.script import family_jobs, job, parameters

with job(snakemake.log[0]):
    given = snakemake.input
    jobs, marked = family_jobs(snakemake, parameters(snakemake, TimelineJob)), map(Path, given.marked)
    timeline.capture_timelines(jobs, Path(given.check), Path(given.timer), list(marked))
