"""Times one variant in a process of its own, for a round of A/A."""

from pathlib import Path
from typing import Any

from warplog.measure import check_time
from warplog.measure import job as jobs
from warplog.plan.script import job, values_of


def main(values: dict[str, Any], check: Path, timer: Path, cases: list[str], record: Path) -> None:
    check_time.time_family([jobs.make_job(record=record, **values)], [check], timer, cases)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            values_of(snakemake),
            Path(snakemake.input.check),
            Path(snakemake.input.timer),
            snakemake.params.cases,
            Path(snakemake.output[0]),
        )
