"""Draws the headline time of each variant of a family over the campaigns, with the steps that were shown."""

from pathlib import Path
from typing import Any

from warplog.core.records import write_text
from warplog.judge import history
from warplog.judge.figures import history as history_figure
from warplog.plan.plan import make_plan
from warplog.plan.script import job


def main(config: dict[str, Any], family: str, campaigns: list[Path], png: Path, svg: Path, csv: Path) -> None:
    plan = make_plan(config)
    data = history.collect(campaigns, plan.families[family], plan.gpu)
    write_text(csv, data.to_csv(index=False, lineterminator="\n"))
    history_figure.save(data, plan.families[family], png, svg)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            snakemake.config,
            snakemake.wildcards.family,
            [Path(campaign) for campaign in snakemake.params.campaigns],
            Path(snakemake.output.png),
            Path(snakemake.output.svg),
            Path(snakemake.output.csv),
        )
