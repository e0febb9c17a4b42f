"""Fails if a variant is not ok, according to the records: for a run that only compiles."""

from warplog.judge.summary.shown import refuse
from warplog.plan.plan import Plan
from warplog.plan.script import job

if "snakemake" in globals():
    with job(snakemake.log[0]):
        refuse(Plan.of_chosen(snakemake.params.plan).known().troubles)
