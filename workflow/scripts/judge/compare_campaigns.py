"""Compares two campaigns, case by case: verdicts as JSON, CSV and Markdown, ratios as a figure."""

from pathlib import Path

from warplog.core.paths import RESULTS
from warplog.judge import comparison
from warplog.judge.campaigns import Sources, parent_of
from warplog.judge.figures import comparison_plot
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.track.address import tracking_uri

with job(snakemake.log[0]):
    plan, out = Plan.made_of(snakemake.params.plan), snakemake.output
    sources = Sources(plan.project, tracking_uri(snakemake.params.uri), plan.gpu, RESULTS)
    compared = comparison.run(list(snakemake.params.names), sources, above=parent_of(plan.families))
    comparison.write(compared, Path(out.json), Path(out.csv), Path(out.markdown))
    comparison_plot.save(compared, Path(out.png), Path(out.svg))
