"""Judges the claims of the campaign's families by its tables."""

from pathlib import Path
from typing import Any

from warplog import claims, tables
from warplog.plan import make_plan
from warplog.script import job
from warplog.table_judged import CLAIMS


def main(config: dict[str, Any], folder: Path) -> None:
    plan = make_plan(config)
    tables.write_table(claims.judge_all(plan.families, folder, plan.gpu), CLAIMS, folder / "claims")


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(snakemake.config, Path(snakemake.output.parquet).parent)
