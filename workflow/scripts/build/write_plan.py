"""Writes the plan that was decided when the workflow started, for the jobs that read it."""

from pathlib import Path
from typing import Any

from warplog.core.records import write_json
from warplog.plan.script import job


def main(plan: dict[str, Any], output: Path) -> None:
    write_json(output, plan, "plan")


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(snakemake.params.plan, Path(snakemake.output[0]))
