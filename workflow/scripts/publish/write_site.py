"""Writes the campaign as static pages: an index, and for each family a page, its steps and its cases."""

from pathlib import Path

from warplog.plan import publish
from warplog.plan.plan import Plan
from warplog.plan.script import job

with job(snakemake.log[0]):
    plan = Plan.of_chosen(snakemake.params.plan)
    publish.write_site(plan, Path(snakemake.input.library), Path(snakemake.output[0]))
