"""Times the variants of a family that passed their checks, cold and hot."""

from pathlib import Path
from typing import Any

from warplog.measure import check_time
from warplog.measure import job as jobs
from warplog.plan.script import job, values_of_family
from warplog.records.settings import TimeSettings


def main(values: dict[str, Any], check: Path, timer: Path, cases: list[str]) -> None:
    check_time.time_family(jobs.make_jobs(TimeSettings, **values), check, timer, cases)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            values_of_family(snakemake),
            Path(snakemake.input.check),
            Path(snakemake.input.timer),
            snakemake.params.job["cases"],
        )
