"""Times the variants of a family that passed their checks, cold and hot."""

from pathlib import Path

from warplog.measure.stages import timing
from warplog.plan.jobs import TimeJob
from warplog.plan.script import family_jobs, job, parameters

if "snakemake" in globals():
    with job(snakemake.log[0]):
        params = parameters(snakemake, TimeJob)
        timing.time_family(
            family_jobs(snakemake, params),
            Path(snakemake.input.check),
            Path(snakemake.input.timer),
            params.cases,
        )
