"""Draws the results of a search: the best time of each pair of parameter values."""

from pathlib import Path

from warplog.figures.shared import style
from warplog.measure.tuning import figure
from warplog.plan.script import job
from warplog.records import door
from warplog.records.tune import Tune


def main(record: Path, png: Path, svg: Path) -> None:
    style.save(figure.draw(door.read(record, Tune)), png, svg)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Path(snakemake.input.record),
            Path(snakemake.output.png),
            Path(snakemake.output.svg),
        )
