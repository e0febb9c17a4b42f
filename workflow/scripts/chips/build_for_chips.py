"""Compiles the variants of a family for one architecture, of which no GPU is needed."""

from pathlib import Path

from warplog.catalog.family import load_family
from warplog.machine import toolchain
from warplog.measure.building import chips
from warplog.plan.jobs import ChipsJob
from warplog.plan.script import job, parameters

with job(snakemake.log[0]):
    made = parameters(snakemake, ChipsJob)
    toolchain.ensure("cuda")
    nvcc, record = toolchain.find("nvcc"), Path(snakemake.output[0])
    arch, version = snakemake.wildcards.arch, snakemake.params.version
    chips.build_family(load_family(Path(made.family_file)), made.variants, arch, nvcc, version, record)
