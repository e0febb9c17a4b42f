"""Logs the campaign's tables, with sources, records and reports, to MLflow."""

from pathlib import Path

from warplog.core.errors import note
from warplog.core.files import write_text
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.track import artefacts, links, log
from warplog.track.address import tracking_uri


def main(plan: Plan, tables: Path, campaign: Path, uri: str, attempt: int, done: Path, runs: Path) -> None:
    files = artefacts.collect(plan.root, plan.gpu, plan.families, plan.chosen, plan.build_record)
    logged = log.log_campaign(tables, door.read(campaign, Campaign), files, uri, note, attempt)
    write_text(runs, links.page(logged, uri))
    door.write(done, logged)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Plan.of_chosen(snakemake.params.plan),
            Path(snakemake.input.tables[0]).parent,
            Path(snakemake.input.campaign),
            tracking_uri(snakemake.params.uri),
            snakemake.params.destination["attempt"],
            Path(snakemake.output.record),
            Path(snakemake.output.runs),
        )
