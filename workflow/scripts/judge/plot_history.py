"""Draws the headline time of each variant over the campaigns and marks steps judged FASTER or SLOWER."""

from pathlib import Path

from warplog.core.csv_text import csv_of_table
from warplog.core.files import write_text
from warplog.judge import history
from warplog.judge.figures import history as figure
from warplog.plan.plan import Plan
from warplog.plan.script import job


def main(plan: Plan, family: str, campaigns: list[Path], png: Path, svg: Path, csv: Path) -> None:
    data = history.collect(campaigns, plan.families[family], plan.gpu)
    write_text(csv, csv_of_table(data))
    figure.save(data, plan.families[family], png, svg)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Plan.made_of(snakemake.params.plan),
            snakemake.wildcards.family,
            [Path(campaign) for campaign in snakemake.params.campaigns],
            Path(snakemake.output.png),
            Path(snakemake.output.svg),
            Path(snakemake.output.csv),
        )
