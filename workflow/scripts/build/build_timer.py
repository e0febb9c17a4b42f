"""Compiles the timing core for one architecture."""

from pathlib import Path

from warplog.machine import toolchain
from warplog.measure.building import build
from warplog.plan.script import job


def main(arch: str, library: Path) -> None:
    toolchain.ensure("cuda")
    build.build_timer(toolchain.find("nvcc"), arch, library)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(snakemake.wildcards.arch, Path(snakemake.output[0]))
