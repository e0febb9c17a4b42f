"""Draws the headline time of each variant over the campaigns and marks steps judged FASTER or SLOWER."""

from pathlib import Path

from warplog.core.csv_text import csv_of_table
from warplog.core.files import write_text
from warplog.judge import history
from warplog.judge.figures import history as figure
from warplog.plan.plan import Plan
from warplog.plan.script import job


def main(plan: Plan, campaigns: list[Path], folder: Path) -> None:
    families = [plan.families[name] for name in plan.chosen]
    for name, data in history.collect_all(campaigns, families, plan.gpu).items():
        write_text(folder / f"{name}.csv", csv_of_table(data))
        figure.save(data, plan.families[name], folder / f"{name}.png", folder / f"{name}.svg")


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Plan.of_chosen(snakemake.params.plan),
            [Path(campaign) for campaign in snakemake.params.campaigns],
            Path(snakemake.output.csv[0]).parent,
        )
