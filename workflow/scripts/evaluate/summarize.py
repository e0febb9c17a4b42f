"""Writes the result of the run: typed rows, a table of all variants, and the page to open."""

from pathlib import Path

from warplog.plan import evaluate
from warplog.plan.plan import Plan
from warplog.plan.script import job

with job(snakemake.log[0]):
    plan, order = Plan.of_chosen(snakemake.params.plan), list(map(Path, snakemake.input.order))
    evaluate.write_summary(plan, order, snakemake.params.figures, Path(snakemake.output.rows).parent)
