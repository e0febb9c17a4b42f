"""Prints the oracle's table; exit status 1 if a verdict is wrong."""

import sys
from pathlib import Path

from warplog.judge import oracle
from warplog.plan.script import job

with job(snakemake.log[0]):
    rows = oracle.read_verdicts(Path(snakemake.input[0]).parent)
    oracle.show_verdicts(rows, sys.stderr)
    sys.exit(oracle.exit_status(rows))
