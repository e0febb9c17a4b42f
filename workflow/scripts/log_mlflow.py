"""Logs the campaign's tables, with sources, records and reports, to MLflow."""

import sys
from pathlib import Path
from typing import Any

from warplog.core import paths
from warplog.core.records import read_json, write_json
from warplog.measure import build
from warplog.plan.plan import Plan, make_plan
from warplog.plan.script import job
from warplog.track import log
from warplog.track.connection import tracking_uri


def main(config: dict[str, Any], tables: Path, campaign: Path, uri: str, done: Path) -> None:
    plan = make_plan(config)
    files = {pair: variant_files(plan, *pair) for pair in plan.pairs()}
    record = read_json(campaign, "record")
    result = log.log_campaign(tables, record, files, uri, lambda line: print(line, file=sys.stderr))
    write_json(done, result.as_record())


def variant_files(plan: Plan, family: str, variant: str) -> list[Path]:
    source = plan.families[family].variant(variant)
    built = build.record_path(plan.root, plan.arch, source)
    records = [paths.record(plan.root, s, plan.gpu, family, variant) for s in ("check", "time", "extract")]
    where = (plan.root, "profile", plan.gpu, family, variant)
    captures = [paths.record(*where, f".{tool}.json") for tool in ("ncu", "nsys")]
    return [
        source.file,
        built.with_name("kernel.sass"),
        built.with_name("compile.log"),
        built,
        *records,
        *captures,
        *reports(captures[0], variant, plan.families[family].baseline),
    ]


def reports(ncu: Path, variant: str, baseline: str) -> list[Path]:
    """The report of ncu that a variant's run keeps: its own, and the baseline's run the family's."""
    name = read_json(ncu, "record").get("report", "") if ncu.is_file() else ""
    return [ncu.parent / name] if name and (variant == baseline or name.startswith(f"{variant}.")) else []


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            snakemake.config,
            Path(snakemake.input.tables[0]).parent,
            Path(snakemake.input.campaign),
            tracking_uri(snakemake.params.uri),
            Path(snakemake.output[0]),
        )
