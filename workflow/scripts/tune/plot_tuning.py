"""Draws the results of a search: the best time of each pair of parameter values."""

from pathlib import Path

from warplog.figures.shared import style
from warplog.measure.tuning import figure
from warplog.plan.script import job
from warplog.records import door
from warplog.records.requested.tune import Tune

with job(snakemake.log[0]):
    drawn = figure.draw(door.read(Path(snakemake.input.record), Tune))
    style.save(drawn, Path(snakemake.output.png), Path(snakemake.output.svg))
