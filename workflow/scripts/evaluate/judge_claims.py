"""Judges the claims of the campaign's families, based on its tables."""

from pathlib import Path

from warplog.plan import evaluate
from warplog.plan.plan import Plan
from warplog.plan.script import job

if "snakemake" in globals():
    with job(snakemake.log[0]):
        plan = Plan.of_chosen(snakemake.params.plan)
        evaluate.write_claims(plan, Path(snakemake.output.parquet).parent)
