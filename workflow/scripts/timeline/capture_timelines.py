"""Captures the timelines of a family's variants with marks."""

from pathlib import Path

from warplog.measure.stages import timeline
from warplog.plan.jobs import TimelineJob
from warplog.plan.script import family_jobs, job, parameters

with job(snakemake.log[0]):
    of = snakemake.input
    jobs, marked = family_jobs(snakemake, parameters(snakemake, TimelineJob)), map(Path, of.marked)
    timeline.capture_timelines(jobs, Path(of.check), Path(of.timer), list(marked))
