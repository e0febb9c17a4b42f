"""Writes the campaign record: name, GPU, driver, tools and code."""

from pathlib import Path

from warplog.core import paths
from warplog.machine import toolchain
from warplog.measure import provenance
from warplog.measure.family_board import boards_of
from warplog.plan.script import job

with job(snakemake.log[0]):
    board = boards_of(snakemake.wildcards.gpu)[0]
    toolchain.ensure("gpu")
    content, given = provenance.content_sha256(paths.project()), snakemake.params
    record, tools = Path(snakemake.output[0]), toolchain.snapshot()
    provenance.write_campaign(record, board, given.name, given.commit, content, tools)
