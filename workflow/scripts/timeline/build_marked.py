"""Compiles one variant with the marks of its timeline."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from warplog.catalog.family import load_family
from warplog.core.errors import progress
from warplog.machine import toolchain
from warplog.measure.building import build
from warplog.plan.script import job


def main(values: dict[str, Any], name: str, arch: str, record: Path) -> None:
    family = load_family(Path(values["family_file"]))
    variant = replace(family.variant(name), parameters=values["parameters"])
    toolchain.ensure("cuda")
    nvcc, cuobjdump = toolchain.find("nvcc"), toolchain.find("cuobjdump")
    done = build.build_variant(family, variant, arch, nvcc, cuobjdump, record.parent, values["attempt"])
    progress(f"  marked  {family.name}/{name}  {done.status}  {done.reason}".rstrip(), done.status)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            snakemake.params.job,
            snakemake.wildcards.variant,
            snakemake.wildcards.arch,
            Path(snakemake.output.record),
        )
