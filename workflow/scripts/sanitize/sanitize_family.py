"""Runs compute-sanitizer's tools over the small check cases of a family's variants."""

from warplog.machine import toolchain
from warplog.measure.stages import sanitize
from warplog.plan.jobs import SanitizeJob
from warplog.plan.script import family_jobs, job, parameters

with job(snakemake.log[0]):
    jobs = family_jobs(snakemake, parameters(snakemake, SanitizeJob))
    sanitize.sanitize_family(jobs, toolchain.find("compute-sanitizer"))
