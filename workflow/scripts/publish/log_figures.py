"""Adds the figures of each family to its runs in MLflow."""

from pathlib import Path

from warplog.core.errors import note
from warplog.plan.script import job
from warplog.records import door
from warplog.track import log
from warplog.track.address import tracking_uri
from warplog.track.presence import LoggedCampaign

if "snakemake" in globals():
    with job(snakemake.log[0]):
        logged = Path(snakemake.input.logged)
        record = door.decode(door.read_json(logged), LoggedCampaign, str(logged))
        folders = list(map(Path, snakemake.input.figures))
        done = log.log_figures(record, folders, tracking_uri(snakemake.params.uri), note)
        door.write(Path(snakemake.output[0]), done)
