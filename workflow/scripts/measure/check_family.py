"""Checks the variants of a family against the float64 reference, on the GPU, once the reference itself was tried."""

from collections.abc import Sequence

from warplog.measure import trial
from warplog.measure.job import Job
from warplog.measure.stages import check
from warplog.plan.jobs import CheckJob
from warplog.plan.script import family_jobs, job, parameters
from warplog.records.config import CheckSettings


def main(jobs: Sequence[Job[CheckSettings]]) -> None:
    trial.try_reference(jobs[0].family)
    check.check_family(jobs)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(family_jobs(snakemake, parameters(snakemake, CheckJob)))
