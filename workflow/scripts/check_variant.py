"""Proves one variant against the float64 reference, on the GPU."""

from pathlib import Path
from typing import Any

from warplog import jobs, measure
from warplog.job import job, values_of


def main(values: dict[str, Any], record: Path) -> None:
    measure.check_variant(jobs.make_job(record=record, **values))


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(values_of(snakemake), Path(snakemake.output[0]))
