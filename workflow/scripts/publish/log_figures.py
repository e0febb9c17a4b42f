"""Adds the figures of each family to its runs in MLflow."""

from pathlib import Path

from warplog.core.errors import note
from warplog.plan.script import job
from warplog.records import door
from warplog.track import log
from warplog.track.address import tracking_uri
from warplog.track.presence import LoggedCampaign

with job(snakemake.log[0]):
    logged, folders = Path(snakemake.input.logged), list(map(Path, snakemake.input.figures))
    record = door.decode(door.read_json(logged), LoggedCampaign, str(logged))
    attached = log.log_figures(record, folders, tracking_uri(snakemake.params.uri), note)
    door.write(Path(snakemake.output[0]), attached)
