"""Prints the oracle's table; exit status 1 if a verdict is wrong."""

import sys
from pathlib import Path

from warplog.judge import oracle
from warplog.plan.script import job


def main(folder: Path) -> int:
    rows = oracle.read_verdicts(folder)
    oracle.show_verdicts(rows, sys.stderr)
    return oracle.exit_status(rows)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        sys.exit(main(Path(snakemake.input[0]).parent))
