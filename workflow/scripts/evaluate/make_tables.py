"""Makes the tables from the records of all variants."""

from pathlib import Path

from warplog.core.errors import note
from warplog.plan import evaluate
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.tables.stages import summary


def main(plan: Plan, folder: Path) -> None:
    source = plan.source()
    rows = evaluate.write_measured(plan, source, folder)
    if plan.live:
        note(f"  tables  {source.campaign.campaign}: {summary(rows['stages'])}")


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(Plan.of_chosen(snakemake.params.plan), Path(snakemake.output.parquet[0]).parent)
