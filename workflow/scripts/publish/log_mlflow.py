"""Logs the campaign's tables, with sources, records and reports, to MLflow."""

from pathlib import Path

from warplog.plan import publish
from warplog.plan.plan import Plan
from warplog.plan.script import job

with job(snakemake.log[0]):
    plan, given, out = Plan.of_chosen(snakemake.params.plan), snakemake.params, snakemake.output
    attempt, processes = given.destination["attempt"], snakemake.threads
    publish.log_runs(plan, given.uri, attempt, Path(out.record), Path(out.runs), processes)
