"""Captures one variant with Nsight Systems (timeline)."""

from pathlib import Path
from typing import Any

from warplog import capture, jobs, toolchain
from warplog.job import job, values_of


def main(values: dict[str, Any], check: Path, cases: list[str], record: Path, report: Path) -> None:
    tool = toolchain.find("nsys")
    capture.capture_nsys(jobs.make_job(record=record, **values), check, tool, report, tuple(cases))


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            values_of(snakemake),
            Path(snakemake.input.check),
            snakemake.params.cases,
            Path(snakemake.output.record),
            Path(snakemake.output.report),
        )
