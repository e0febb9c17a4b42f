"""Reduces one variant's ncu and nsys reports to named metrics."""

from pathlib import Path

from warplog import extract
from warplog.job import job


def main(ncu: Path, ncu_report: Path, nsys: Path, nsys_report: Path, cases: list[str], output: Path) -> None:
    extract.extract_record(ncu, ncu_report, nsys, nsys_report, tuple(cases), output)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Path(snakemake.input.ncu),
            Path(snakemake.input.ncu_report),
            Path(snakemake.input.nsys),
            Path(snakemake.input.nsys_report),
            snakemake.params.cases,
            Path(snakemake.output[0]),
        )
