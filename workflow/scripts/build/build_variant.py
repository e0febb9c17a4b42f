"""Compiles one variant; without nvcc, or a GPU for a Python variant, uses its recorded build instead."""

from pathlib import Path

from warplog.measure.building.variant import build_variant
from warplog.plan.jobs import BuildJob
from warplog.plan.script import job, parameters

with job(snakemake.log[0]):
    build, folder = parameters(snakemake, BuildJob), Path(snakemake.output.record).parent
    recorded = Path(build.recorded) if build.recorded else None
    keys = snakemake.wildcards
    build_variant(
        Path(build.family_file), keys.variant, build.parameters, keys.arch, folder, build.attempt, recorded
    )
