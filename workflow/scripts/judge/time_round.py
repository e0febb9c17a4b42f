"""Times the variants of a family for one A/A round: a whole measurement, in fresh processes."""

from pathlib import Path

from warplog.measure import check_time
from warplog.plan.jobs import TimeJob
from warplog.plan.script import family_jobs, job, parameters

with job(snakemake.log[0]):
    timing = parameters(snakemake, TimeJob)
    jobs, check, timer = family_jobs(snakemake, timing), snakemake.input.check, snakemake.input.timer
    check_time.time_family(jobs, Path(check), Path(timer), timing.cases)
