"""Draws the figures of a family from the tables, and writes a CSV file with the numbers of each."""

from pathlib import Path

from warplog.figures.shared import family_figures
from warplog.figures.shared.settings import for_pages, settings_of
from warplog.plan.script import job
from warplog.records import door
from warplog.records.config import FigureSettings
from warplog.tables import view

with job(snakemake.log[0]):
    given, tables = snakemake.params, Path(snakemake.input.tables[0]).parent
    settings = for_pages(settings_of(door.decode(given.settings, FigureSettings, "params.settings")))
    data = view.load(tables, snakemake.wildcards.family)
    family_figures.draw(data, given.figures, settings, Path(snakemake.output[0]), given.version)
