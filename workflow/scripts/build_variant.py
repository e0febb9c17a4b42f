"""Compiles one variant; without any nvcc, the recorded build record takes its place."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from warplog.catalog.family import load_family
from warplog.core.errors import WarplogError
from warplog.machine import toolchain
from warplog.measure import build
from warplog.plan.script import job


def main(
    family_file: Path, name: str, parameters: Mapping[str, int], arch: str, record: Path, recorded: str
) -> None:
    family = load_family(family_file)
    variant = replace(family.variant(name), parameters=parameters)
    try:
        toolchain.ensure("cuda")
        nvcc = toolchain.find("nvcc")
    except WarplogError as error:
        if not recorded or not Path(recorded).is_file():
            raise
        print(f"  build   {family.name}/{name}  recorded ({error})", file=sys.stderr)
        build.take_recorded(Path(recorded), record.parent)
        return
    done = build.build_variant(family, variant, arch, nvcc, toolchain.find("cuobjdump"), record.parent)
    print(f"  build   {family.name}/{name}  {done['status']}  {done['reason']}".rstrip(), file=sys.stderr)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Path(snakemake.params.family_file),
            snakemake.wildcards.variant,
            snakemake.params.parameters,
            snakemake.wildcards.arch,
            Path(snakemake.output.record),
            snakemake.params.recorded,
        )
