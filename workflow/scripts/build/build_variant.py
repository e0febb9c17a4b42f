"""Compiles one variant; without nvcc, or a GPU for a Python variant, uses its recorded build instead."""

from pathlib import Path

from warplog.measure.building.variant import build_variant
from warplog.plan.jobs import BuildJob
from warplog.plan.script import job, parameters

with job(snakemake.log[0]):
    of, folder = parameters(snakemake, BuildJob), Path(snakemake.output.record).parent
    recorded = Path(of.recorded) if of.recorded else None
    keys = snakemake.wildcards
    build_variant(Path(of.family_file), keys.variant, of.parameters, keys.arch, folder, of.attempt, recorded)
