"""Extracts the metrics of each variant from the ncu and nsys sessions of a family."""

from pathlib import Path

from warplog.extract import stage
from warplog.plan.script import job

if "snakemake" in globals():
    with job(snakemake.log[0]):
        stage.extract_family(
            Path(snakemake.input.ncu),
            Path(snakemake.input.nsys),
            snakemake.params.job["ncu"],
            snakemake.params.job["nsys"],
            Path(snakemake.output[0]),
            [Path(path) for path in snakemake.input.sources],
        )
