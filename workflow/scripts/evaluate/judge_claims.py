"""Judges the claims of the campaign's families, based on its tables."""

from pathlib import Path

from warplog.core.columns import CLAIMS
from warplog.judge import claims
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.tables.files import write_table


def main(plan: Plan, folder: Path) -> None:
    write_table(claims.judge_all(plan.families, folder), CLAIMS, folder / "claims")


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(Plan.of_chosen(snakemake.params.plan), Path(snakemake.output.parquet).parent)
