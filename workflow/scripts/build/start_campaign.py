"""Writes the campaign record: name, GPU, driver, tools and code."""

from pathlib import Path

from warplog.core import paths
from warplog.machine import toolchain
from warplog.measure import provenance
from warplog.measure.family_board import boards_of
from warplog.plan.script import job


def main(gpu: str, name: str, commit: str, output: Path) -> None:
    found = boards_of(gpu)[0]
    toolchain.ensure("gpu")
    content = provenance.content_sha256(paths.project())
    provenance.write_campaign(output, found, name, commit, content, toolchain.snapshot())


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            snakemake.wildcards.gpu,
            snakemake.params.name,
            snakemake.params.commit,
            Path(snakemake.output[0]),
        )
