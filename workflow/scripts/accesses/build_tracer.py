"""Compiles the tracer of memory accesses for one architecture."""

from pathlib import Path

from warplog.machine import toolchain
from warplog.measure.building import tracer
from warplog.plan.script import job

with job(snakemake.log[0]):
    toolchain.ensure("cuda")
    toolchain.ensure("tracer")
    api, output = toolchain.sanitizer_api(), Path(snakemake.output[0])
    tracer.build_tracer(toolchain.find("nvcc"), api, snakemake.wildcards.arch, output)
