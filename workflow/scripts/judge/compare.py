"""Prints the verdicts of a comparison; fails if there is a confirmed regression or nothing to compare."""

from pathlib import Path

from warplog.judge import comparison
from warplog.plan.script import job

with job(snakemake.log[0]):
    comparison.report(Path(snakemake.input[0]))
