"""Runs compute-sanitizer's tools over one variant's small check cases."""

from pathlib import Path
from typing import Any

from warplog import jobs, sanitize, toolchain
from warplog.job import job, values_of


def main(values: dict[str, Any], record: Path) -> None:
    tool = toolchain.find("compute-sanitizer")
    sanitize.sanitize_variant(jobs.make_job(record=record, **values), tool)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(values_of(snakemake), Path(snakemake.output[0]))
