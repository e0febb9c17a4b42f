"""Fails if a variant is not ok, according to the records: for a run that only compiles."""

from warplog.judge.summary.shown import refuse
from warplog.plan.files import Files
from warplog.plan.plan import Plan
from warplog.plan.script import job

with job(snakemake.log[0]):
    refuse(Files(Plan.of_chosen(snakemake.params.plan)).stage_results().troubles)
