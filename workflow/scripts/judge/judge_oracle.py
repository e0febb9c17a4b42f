"""Compares the oracle's measurements with their known true values; writes the table `oracle`."""

from pathlib import Path

from warplog.plan import evaluate
from warplog.plan.plan import Plan
from warplog.plan.script import job

with job(snakemake.log[0]):
    plan = Plan.made_of(snakemake.params.plan).oracle()
    evaluate.write_oracle(plan, plan.source(), Path(snakemake.output.csv).parent)
