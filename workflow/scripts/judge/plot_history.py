"""Draws the headline time of each variant over the campaigns and marks steps judged FASTER or SLOWER."""

from pathlib import Path

from warplog.judge import history
from warplog.judge.figures import history_plot
from warplog.plan.plan import Plan
from warplog.plan.script import job

with job(snakemake.log[0]):
    plan, campaigns = Plan.of_chosen(snakemake.params.plan), list(map(Path, snakemake.params.campaigns))
    families = [plan.families[name] for name in plan.chosen]
    for name, data in history.collect_all(campaigns, families, plan.gpu).items():
        history_plot.write(data, plan.families[name], Path(snakemake.output.csv[0]).parent)
