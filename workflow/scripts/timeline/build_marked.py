"""Compiles one variant with the marks of its timeline."""

from pathlib import Path

from warplog.measure.building.variant import build_variant
from warplog.plan.jobs import BuildJob
from warplog.plan.script import job, parameters

with job(snakemake.log[0]):
    build, folder = parameters(snakemake, BuildJob), Path(snakemake.output.record).parent
    keys = snakemake.wildcards
    build_variant(
        Path(build.family_file),
        keys.variant,
        build.parameters,
        keys.arch,
        folder,
        build.attempt,
        word="marked",
    )
