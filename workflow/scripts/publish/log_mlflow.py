"""Logs the campaign's tables, with sources, records and reports, to MLflow."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from warplog.core import paths, store
from warplog.core.errors import note
from warplog.core.files import write_text
from warplog.plan.files import Files
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.records import door, stages
from warplog.records.build import Build
from warplog.records.campaign import Campaign
from warplog.records.family_file import FamilyRecord
from warplog.records.profile import Profile
from warplog.track import links, log
from warplog.track.address import tracking_uri
from warplog.track.log import VariantFiles

RECORDS: Mapping[str, stages.Recorded] = {  # by name of the artefact
    "check.json": stages.CHECK,
    "time.json": stages.TIME,
    "extract.json": stages.EXTRACT,
    "profile_ncu.json": stages.NCU,
    "profile_nsys.json": stages.NSYS,
}


def main(plan: Plan, tables: Path, campaign: Path, uri: str, attempt: int, done: Path, runs: Path) -> None:
    result = log.log_campaign(tables, door.read(campaign, Campaign), dict(artefacts(plan)), uri, note)
    write_text(runs, links.page(result, uri))
    door.write(done, result.as_record(attempt))


def artefacts(plan: Plan) -> Iterator[tuple[tuple[str, str], VariantFiles]]:
    """Yields the files of each variant: source, build, records, and the ncu report to keep in its run."""
    for name, variants in plan.chosen.items():
        places = {
            artefact: (stage.record, stage.at(plan.root, gpu=plan.gpu, family=name))
            for artefact, stage in RECORDS.items()
        }
        stored = {
            artefact: FamilyRecord.read_if_there(path, kind).variants
            for artefact, (kind, path) in places.items()
        }
        captures = paths.captures(places["profile_ncu.json"][1])
        for variant in variants:
            records = {
                a: by_variant[variant.name] for a, by_variant in stored.items() if variant.name in by_variant
            }
            built = Files(plan).build_record(variant)
            if store.is_file(built):
                records["build.json"] = door.read(built, Build)
            products = [built.with_name(file) for file in ("kernel.sass", "kernel.ptx", "compile.log")]
            report = kept_report(records.get("profile_ncu.json"), plan.families[name].baseline)
            files = [variant.file, *products, *([captures / report] if report else [])]
            yield (name, variant.name), VariantFiles(files, records)


def kept_report(capture: Profile | None, baseline: str) -> str:
    """Returns the ncu report for a variant's run: its own, or for the baseline the family's; '' if none."""
    own = capture and (capture.variant == baseline or capture.report.startswith(f"{capture.variant}."))
    return capture.report if own else ""


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
