"""Writes the campaign as static pages: an index, and for each family a page, its steps and its cases."""

from pathlib import Path

from warplog import worklog
from warplog.core import paths
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.tables import view
from warplog.worklog.site import Site


def main(plan: Plan, tables: Path, library: Path, output: Path) -> None:
    campaign = door.read(Path(plan.campaign()), Campaign)
    read = view.read_all(tables)
    site = Site(output, library.read_text(encoding="utf-8"))
    for name, variants in plan.chosen.items():
        data = view.of_family(read, tables, name)
        pictures = sorted((paths.RESULTS / "figures" / name).glob("*.png"))
        kept = {v.name: plan.build_record(v).with_name("kernel.sass") for v in variants}
        page = worklog.gather(plan.families[name], data, campaign, pictures, paths.WORKFLOW / "report", kept)
        site.add(page, data)
    for folder in sorted((paths.RESULTS / "recorded").glob("[!.]*/tables")):
        site.beside(folder)
    site.finish(campaign)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Plan.of_chosen(snakemake.params.plan),
            Path(snakemake.input.tables[0]).parent,
            Path(snakemake.input.library),
            Path(snakemake.output[0]),
        )
