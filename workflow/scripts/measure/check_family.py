"""Checks the variants of a family against the float64 reference, on the GPU, once the reference itself was tried."""

from warplog.measure import check_time
from warplog.plan.jobs import CheckJob
from warplog.plan.script import family_jobs, job, parameters

with job(snakemake.log[0]):
    check_time.check_family(family_jobs(snakemake, parameters(snakemake, CheckJob)))
