"""Times the variants of a family that passed their checks, cold and hot."""

from pathlib import Path

from warplog.measure.stages import timing
from warplog.plan.jobs import TimeJob
from warplog.plan.script import family_jobs, job, parameters

with job(snakemake.log[0]):
    given = parameters(snakemake, TimeJob)
    jobs, check, timer = family_jobs(snakemake, given), snakemake.input.check, snakemake.input.timer
    timing.time_family(jobs, Path(check), Path(timer), given.cases)
