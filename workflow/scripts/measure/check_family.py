"""Checks the variants of a family against the float64 reference, on the GPU, once the reference itself was tried."""

from typing import Any

from warplog.measure import check_time, trial
from warplog.measure import job as jobs
from warplog.plan.script import job, values_of_family
from warplog.records.settings import CheckSettings


def main(values: dict[str, Any]) -> None:
    found = jobs.make_jobs(CheckSettings, **values)
    trial.try_reference(found[0].family)
    check_time.check_family(found)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(values_of_family(snakemake))
