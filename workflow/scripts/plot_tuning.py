"""Draws what a search saw: the best of each pair of parameter values."""

from pathlib import Path

from warplog import figure_style, tuning_figure
from warplog.records import read_json
from warplog.script import job


def main(record: Path, png: Path, svg: Path) -> None:
    figure_style.save(tuning_figure.draw(read_json(record, "record")), png, svg)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Path(snakemake.input.record),
            Path(snakemake.output.png),
            Path(snakemake.output.svg),
        )
