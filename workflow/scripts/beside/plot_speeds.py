"""Draws the speed of a family's variants on each GPU of the run."""

from collections.abc import Sequence
from pathlib import Path

from warplog.core.csv_text import csv_of_table
from warplog.core.files import write_text
from warplog.plan.script import job
from warplog.plotting import style
from warplog.tables import view
from warplog.worklog.site import speeds


def main(folder: Path, family: str, gpus: Sequence[str], png: Path, svg: Path, csv: Path) -> None:
    rows = speeds.data(view.on_gpus(view.read_all(folder), folder, family, gpus))
    write_text(csv, csv_of_table(rows))
    style.save(speeds.draw(rows), png, svg)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Path(snakemake.input.tables[0]).parent,
            snakemake.wildcards.family,
            snakemake.params.gpus,
            Path(snakemake.output.png),
            Path(snakemake.output.svg),
            Path(snakemake.output.csv),
        )
