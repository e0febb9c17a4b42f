"""Writes the worklog page of a family as one HTML file and as Markdown, and its tables and figures as LaTeX."""

from pathlib import Path

from warplog.plan import publish
from warplog.plan.plan import Plan
from warplog.plan.script import job

with job(snakemake.log[0]):
    family, out = snakemake.wildcards.family, snakemake.output
    plan = Plan.made_of(snakemake.params.plan, [family])
    publish.write_page(plan, family, Path(snakemake.input.library), Path(out.html), Path(out.latex))
