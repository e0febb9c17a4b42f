"""Writes the JavaScript that draws the charts of pages, in one piece that needs no network."""

from pathlib import Path

from warplog.core.files import write_text
from warplog.plan.script import job
from warplog.worklog.pictures import charts

with job(snakemake.log[0]):
    write_text(Path(snakemake.output[0]), charts.library())
