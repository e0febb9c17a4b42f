"""Runs compute-sanitizer's tools over the small check cases of a family's variants."""

from typing import Any

from warplog.machine import toolchain
from warplog.measure import job as jobs
from warplog.measure import sanitize
from warplog.plan.script import job, values_of_family
from warplog.records.settings import SanitizeSettings


def main(values: dict[str, Any]) -> None:
    sanitize.sanitize_family(jobs.make_jobs(SanitizeSettings, **values), toolchain.find("compute-sanitizer"))


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(values_of_family(snakemake))
