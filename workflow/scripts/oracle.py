"""Prints the oracle's table; exit status 1 where a verdict is wrong."""

import sys
from pathlib import Path

from warplog import oracle_report
from warplog.script import job


def main(folder: Path) -> int:
    rows = oracle_report.read(folder)
    oracle_report.show(rows, sys.stderr)
    return oracle_report.exit_status(rows)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        sys.exit(main(Path(snakemake.input.csv).parent))
