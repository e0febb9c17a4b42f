"""Draws the predicted against the measured saving of every step of the campaign, and writes the numbers as CSV."""

from pathlib import Path

from warplog.figures.campaign import predicted_savings
from warplog.figures.shared.settings import for_pages, settings_of
from warplog.plan.script import job
from warplog.records import door
from warplog.records.config import FigureSettings
from warplog.tables.files import read_table

with job(snakemake.log[0]):
    given, tables = snakemake.params, Path(snakemake.input.analysis[0]).parent
    settings = for_pages(settings_of(door.decode(given.settings, FigureSettings, "params.settings")))
    predicted_savings.write(read_table(tables, "mechanisms"), settings, Path(snakemake.output[0]))
