"""Compiles one variant with the marks of its timeline."""

from warplog.measure.building.variant import build_variant
from warplog.plan.script import build_job, job

with job(snakemake.log[0]):
    build_variant(build_job(snakemake), word="marked")
