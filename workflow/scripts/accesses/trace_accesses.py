"""Traces the memory accesses of a family's variants, and counts the same launches if counters are wanted."""

from pathlib import Path

from warplog.machine import toolchain
from warplog.measure.stages import accesses
from warplog.plan.jobs import AccessJob
from warplog.plan.script import family_jobs, job, parameters

with job(snakemake.log[0]):
    given, tracing = snakemake.input, parameters(snakemake, AccessJob)
    ncu = toolchain.find("ncu") if tracing.counted else None
    accesses.trace_accesses(family_jobs(snakemake, tracing), Path(given.check), Path(given.tracer), ncu)
