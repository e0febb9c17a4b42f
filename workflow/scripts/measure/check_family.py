"""Checks the variants of a family against the float64 reference, on the GPU, once the reference itself was tried."""

from warplog.measure.stages import check
from warplog.plan.jobs import CheckJob
from warplog.plan.script import family_jobs, job, parameters

with job(snakemake.log[0]):
    check.check_family(family_jobs(snakemake, parameters(snakemake, CheckJob)))
