"""Checks the variants of a family against the float64 reference, on the GPU."""

from typing import Any

from warplog.measure import check_time
from warplog.measure import job as jobs
from warplog.plan.script import job, replayed, values_of_family


def main(values: dict[str, Any]) -> None:
    check_time.check_family(jobs.make_jobs(**values))


if "snakemake" in globals():
    with job(snakemake.log[0]):
        if not replayed(snakemake):
            main(values_of_family(snakemake))
