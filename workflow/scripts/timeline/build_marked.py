"""Compiles one variant with the marks of its timeline."""

from pathlib import Path

from msgspec.structs import replace

from warplog.catalog.family import load_family
from warplog.core.errors import progress
from warplog.machine import toolchain
from warplog.measure.building import build
from warplog.plan.jobs import BuildJob
from warplog.plan.script import job, parameters


def main(params: BuildJob, name: str, arch: str, record: Path) -> None:
    family = load_family(Path(params.family_file))
    variant = replace(family.variant(name), parameters=params.parameters)
    toolchain.ensure("cuda")
    nvcc, cuobjdump = toolchain.find("nvcc"), toolchain.find("cuobjdump")
    done = build.build_variant(family, variant, arch, nvcc, cuobjdump, record.parent, params.attempt)
    progress(f"  marked  {family.name}/{name}  {done.status}  {done.reason}".rstrip(), done.status)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            parameters(snakemake, BuildJob),
            snakemake.wildcards.variant,
            snakemake.wildcards.arch,
            Path(snakemake.output.record),
        )
