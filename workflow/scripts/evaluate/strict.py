"""Fails if a variant is not ok, according to the summary of the run."""

from pathlib import Path

from warplog.judge.summary.rows import Summary
from warplog.judge.summary.shown import refuse
from warplog.plan.script import job
from warplog.records import door

with job(snakemake.log[0]):
    refuse(door.read(Path(snakemake.input[0]), Summary).troubles)
