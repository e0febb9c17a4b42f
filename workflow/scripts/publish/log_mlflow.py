"""Logs the campaign's tables, with sources, records and reports, to MLflow."""

from collections.abc import Iterator
from pathlib import Path

from warplog.core import paths, store
from warplog.core.errors import note
from warplog.core.files import write_text
from warplog.core.records import FamilyRecord, Record, read_json, write_json
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.track import links, log
from warplog.track.address import tracking_uri
from warplog.track.log import VariantFiles

RECORDS = {  # artefact name: folder and suffix of the family's record
    "check.json": ("check", ".json"),
    "time.json": ("time", ".json"),
    "extract.json": ("extract", ".json"),
    "profile_ncu.json": ("profile", ".ncu.json"),
    "profile_nsys.json": ("profile", ".nsys.json"),
}


def main(plan: Plan, tables: Path, campaign: Path, uri: str, attempt: int, done: Path, runs: Path) -> None:
    files = dict(artefacts(plan))
    record = read_json(campaign, "record")
    result = log.log_campaign(tables, record, files, uri, note)
    write_text(runs, links.page(result, uri))
    write_json(done, {**result.as_record(), "attempt": attempt})


def artefacts(plan: Plan) -> Iterator[tuple[tuple[str, str], VariantFiles]]:
    """Yields the files of each variant: source, build, records, and the ncu report to keep in its run."""
    for name, variants in plan.chosen.items():
        places = {
            artefact: paths.family_record(plan.root, stage, plan.gpu, name, suffix)
            for artefact, (stage, suffix) in RECORDS.items()
        }
        stored = {artefact: FamilyRecord.read_if_there(path).variants for artefact, path in places.items()}
        captures = paths.captures(places["profile_ncu.json"])
        for variant in variants:
            records = {a: found[variant.name] for a, found in stored.items() if variant.name in found}
            built = plan.build_record(variant)
            beside = [built.with_name(file) for file in ("kernel.sass", "kernel.ptx", "compile.log")]
            report = kept_report(records, variant.name, plan.families[name].baseline)
            if store.is_file(built):
                records["build.json"] = read_json(built, "record")
            files = [variant.file, *beside, *([captures / report] if report else [])]
            yield (name, variant.name), VariantFiles(files, records)


def kept_report(records: dict[str, Record], variant: str, baseline: str) -> str:
    """Returns the ncu report for a variant's run: its own, or for the baseline the family's; '' if none."""
    report = str(records.get("profile_ncu.json", {}).get("report", ""))
    return report if variant == baseline or report.startswith(f"{variant}.") else ""


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
