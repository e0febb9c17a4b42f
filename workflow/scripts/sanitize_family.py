"""Runs compute-sanitizer's tools over the small check cases of a family's variants."""

from typing import Any

from warplog import jobs, sanitize, toolchain
from warplog.script import job, values_of_family


def main(values: dict[str, Any]) -> None:
    sanitize.sanitize_family(jobs.make_jobs(**values), toolchain.find("compute-sanitizer"))


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(values_of_family(snakemake))
