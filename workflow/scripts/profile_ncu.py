"""Captures one variant with Nsight Compute (counters)."""

from pathlib import Path
from typing import Any

from warplog import capture, jobs, toolchain
from warplog.job import job


def main(values: dict[str, Any], check: Path, cases: list[str], record: Path, report: Path) -> None:
    tool = toolchain.find("ncu")
    capture.capture_ncu(jobs.make_job(record=record, **values), check, tool, report, tuple(cases))


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            {
                "family_file": Path(snakemake.params.family_file),
                "variant": snakemake.wildcards.variant,
                "gpu": snakemake.wildcards.gpu,
                "build": Path(snakemake.input.build),
                "campaign": Path(snakemake.input.campaign),
                "settings": snakemake.params.settings,
            },
            Path(snakemake.input.check),
            snakemake.params.cases,
            Path(snakemake.output.record),
            Path(snakemake.output.report),
        )
