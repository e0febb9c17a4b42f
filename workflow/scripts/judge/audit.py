"""Audits the pages against the tables; exit status 1 if a number differs from its cell or has none."""

import sys
from pathlib import Path

from warplog.plan.script import job
from warplog.worklog.audit import audit


def main(folder: Path) -> int:
    return 0 if audit(folder, sys.stderr).passed else 1


if "snakemake" in globals():
    with job(snakemake.log[0]):
        sys.exit(main(Path(snakemake.input.pages[0]).parents[1]))
