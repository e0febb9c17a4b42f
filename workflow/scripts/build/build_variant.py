"""Compiles one variant; without nvcc, or a GPU for a Python variant, uses its recorded build instead."""

from warplog.measure.building.variant import build_variant
from warplog.plan.script import build_job, job

with job(snakemake.log[0]):
    build_variant(build_job(snakemake))
