"""Prints the oracle's table; exit status 1 if a verdict is wrong."""

import sys
from collections.abc import Sequence
from pathlib import Path

from warplog.judge import oracle
from warplog.plan.script import job


def main(folders: Sequence[Path]) -> int:
    found = [oracle.read_verdicts(folder) for folder in folders]
    for rows in found:
        oracle.show_verdicts(rows, sys.stderr)
    return max(map(oracle.exit_status, found))


if "snakemake" in globals():
    with job(snakemake.log[0]):
        sys.exit(main([Path(path).parent for path in snakemake.input]))
