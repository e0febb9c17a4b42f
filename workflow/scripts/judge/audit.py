"""Audits the pages against the tables; exit status 1 if a number is wrong or cannot be attributed."""

import sys
from collections.abc import Iterable
from pathlib import Path

from warplog.judge.audit import audit
from warplog.plan.script import job


def main(folders: Iterable[Path]) -> int:
    audits = [audit(folder, sys.stderr) for folder in folders]
    return 0 if all(one.passed for one in audits) else 1


if "snakemake" in globals():
    with job(snakemake.log[0]):
        sys.exit(main(sorted({Path(page).parents[1] for page in snakemake.input.pages})))
