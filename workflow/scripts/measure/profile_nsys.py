"""Captures the variants of a family with Nsight Systems (timeline)."""

from pathlib import Path

from warplog.machine import toolchain
from warplog.measure.stages import capture
from warplog.plan.jobs import ProfileJob
from warplog.plan.script import family_jobs, job, parameters

if "snakemake" in globals():
    with job(snakemake.log[0]):
        params = parameters(snakemake, ProfileJob)
        jobs = family_jobs(snakemake, params)
        capture.capture_nsys(jobs, Path(snakemake.input.check), toolchain.find("nsys"), params.cases)
