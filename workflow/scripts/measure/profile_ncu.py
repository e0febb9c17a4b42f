"""Captures the variants of a family with Nsight Compute (counters)."""

from pathlib import Path

from warplog.machine import toolchain
from warplog.measure.stages import capture
from warplog.plan.jobs import ProfileJob
from warplog.plan.script import family_jobs, job, parameters

with job(snakemake.log[0]):
    profiling = parameters(snakemake, ProfileJob)
    jobs, check = family_jobs(snakemake, profiling), Path(snakemake.input.check)
    capture.capture_ncu(jobs, check, toolchain.find("ncu"), profiling.cases)
