"""Compiles the timing core for one architecture."""

from pathlib import Path

from warplog.machine import toolchain
from warplog.measure.building import build
from warplog.plan.script import job

with job(snakemake.log[0]):
    toolchain.ensure("cuda")
    build.build_timer(toolchain.find("nvcc"), snakemake.wildcards.arch, Path(snakemake.output[0]))
