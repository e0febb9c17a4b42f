"""Makes the tables from the records of all variants."""

from pathlib import Path

from warplog.plan import evaluate
from warplog.plan.plan import Plan
from warplog.plan.script import job

with job(snakemake.log[0]):
    plan = Plan.of_chosen(snakemake.params.plan)
    evaluate.write_measured(plan, plan.source(), Path(snakemake.output.parquet[0]).parent)
