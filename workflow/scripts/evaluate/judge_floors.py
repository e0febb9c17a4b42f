"""Estimates the smallest gap that counts, case by case, from the processes of the campaign and of its A/A rounds."""

from pathlib import Path

from warplog.plan import evaluate
from warplog.plan.plan import Plan
from warplog.plan.script import job

with job(snakemake.log[0]):
    plan = Plan.of_chosen(snakemake.params.plan)
    evaluate.write_floors(plan, plan.source(), Path(snakemake.output.parquet).parent)
