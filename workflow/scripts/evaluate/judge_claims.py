"""Judges the claims, predictions and expectations of the campaign's families, based on its tables."""

from pathlib import Path

from warplog.plan import evaluate
from warplog.plan.plan import Plan
from warplog.plan.script import job

with job(snakemake.log[0]):
    evaluate.write_claims(Plan.of_chosen(snakemake.params.plan), Path(snakemake.output.parquet).parent)
