"""Extracts the metrics of each variant from the ncu and nsys sessions of a family."""

from pathlib import Path

from warplog.extract import stage
from warplog.plan.jobs import ExtractJob
from warplog.plan.script import job, parameters

if "snakemake" in globals():
    with job(snakemake.log[0]):
        captured = parameters(snakemake, ExtractJob)
        stage.extract_family(
            Path(snakemake.input.ncu),
            Path(snakemake.input.nsys),
            captured.ncu,
            captured.nsys,
            Path(snakemake.output[0]),
            [Path(path) for path in snakemake.input.sources],
        )
