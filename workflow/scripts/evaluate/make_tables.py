"""Makes the tables from the records of all variants."""

from pathlib import Path

from warplog.core.errors import note
from warplog.machine import device
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.tables.files import write_tables
from warplog.tables.rows import make_rows
from warplog.tables.stages import summary


def main(plan: Plan, folder: Path) -> None:
    source = plan.source()
    peaks = device.peaks(source.campaign.device, device.known_gpus(plan.project))
    rows = make_rows(source, plan.families, plan.cases, plan.chosen, peaks)
    write_tables(rows, folder)
    if plan.live:
        note(f"  tables  {source.campaign.campaign}: {summary(rows['stages'])}")


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(Plan.of_chosen(snakemake.params.plan), Path(snakemake.output.parquet[0]).parent)
