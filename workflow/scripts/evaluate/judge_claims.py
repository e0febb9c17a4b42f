"""Judges the published claims about the campaign's families by its tables."""

from pathlib import Path

from warplog.core.columns import CLAIMS
from warplog.judge import claims
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.tables.files import write_table


def main(plan: Plan, folder: Path) -> None:
    write_table(claims.judge_all(plan.families, folder, plan.gpu), CLAIMS, folder / "claims")


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(Plan.read(Path(snakemake.input.plan)), Path(snakemake.output.parquet).parent)
