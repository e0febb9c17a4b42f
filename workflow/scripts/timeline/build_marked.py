"""Compiles one variant with the marks of its timeline."""

from pathlib import Path

from warplog.measure.building.variant import build_variant
from warplog.plan.jobs import BuildJob
from warplog.plan.script import job, parameters

with job(snakemake.log[0]):
    of, folder = parameters(snakemake, BuildJob), Path(snakemake.output.record).parent
    keys = snakemake.wildcards
    build_variant(
        Path(of.family_file), keys.variant, of.parameters, keys.arch, folder, of.attempt, word="marked"
    )
