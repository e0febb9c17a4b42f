"""Audits the pages against the tables; exit status 1 if a number is wrong or cannot be attributed."""

import sys
from pathlib import Path

from warplog.judge.audit import audit
from warplog.plan.script import job


def main(folder: Path) -> int:
    return 0 if audit(folder, sys.stderr).passed else 1


if "snakemake" in globals():
    with job(snakemake.log[0]):
        sys.exit(main(Path(snakemake.input.pages[0]).parents[1]))
