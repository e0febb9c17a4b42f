"""Judges the claims of the campaign's families by its tables."""

from pathlib import Path
from typing import Any

from warplog.core.columns import CLAIMS
from warplog.judge import claims
from warplog.plan.plan import make_plan
from warplog.plan.script import job
from warplog.tables import files


def main(config: dict[str, Any], folder: Path) -> None:
    plan = make_plan(config)
    files.write_table(claims.judge_all(plan.families, folder, plan.gpu), CLAIMS, folder / "claims")


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(snakemake.config, Path(snakemake.output.parquet).parent)
