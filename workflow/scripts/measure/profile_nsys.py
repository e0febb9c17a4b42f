"""Captures the variants of a family with Nsight Systems (timeline)."""

from pathlib import Path
from typing import Any

from warplog.machine import toolchain
from warplog.measure import capture
from warplog.measure import job as jobs
from warplog.plan.script import job, values_of_family
from warplog.records.settings import ProfileSettings


def main(values: dict[str, Any], check: Path, cases: dict[str, list[str]]) -> None:
    capture.capture_nsys(jobs.make_jobs(ProfileSettings, **values), check, toolchain.find("nsys"), cases)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(values_of_family(snakemake), Path(snakemake.input.check), snakemake.params.job["cases"])
