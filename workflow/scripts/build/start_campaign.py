"""Writes the campaign record: name, GPU, driver, tools and code."""

from pathlib import Path

from warplog.machine import toolchain
from warplog.measure import provenance
from warplog.measure.family_board import boards_of
from warplog.plan.script import job

with job(snakemake.log[0]):
    board = boards_of(snakemake.wildcards.gpu)[0]
    toolchain.ensure("gpu")
    provenance.write_campaign(
        Path(snakemake.output[0]),
        board,
        snakemake.params.name,
        snakemake.params.commit,
        toolchain.snapshot(),
    )
