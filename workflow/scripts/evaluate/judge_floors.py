"""Estimates the smallest gap that counts, case by case, from the processes of the campaign and of its A/A rounds."""

from pathlib import Path

from warplog.core.columns import FLOORS
from warplog.judge import floors, samples
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.tables.files import write_table


def main(plan: Plan, folder: Path) -> None:
    chosen = {(f, v, case) for f, v in plan.pairs() for case in plan.cases[f]}
    timed = samples.load(plan.root, plan.gpu, counted=False) if plan.records("time") else None
    rows = floors.table_rows(timed) if timed else ()
    shown = [row for row in rows if (row["family"], row["variant"], row["case"]) in chosen]
    labels = plan.source().labels()
    write_table([{**row, **labels} for row in shown], FLOORS, folder / "floors")


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(Plan.of_chosen(snakemake.params.plan), Path(snakemake.output.parquet).parent)
