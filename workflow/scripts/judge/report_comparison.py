"""Prints the verdicts of a comparison; fails if there is a confirmed regression or nothing to compare."""

import sys
from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.plan.script import job
from warplog.records import door


def main(verdicts: Path) -> None:
    found = door.read_json(verdicts)
    for line in found["claims"]:
        print(f"  {line}", file=sys.stderr)
    print(found["summary"], file=sys.stderr)
    if found["status"]:
        raise WarplogError(f"{verdicts.with_suffix('.md')}: a confirmed regression, or nothing to compare")


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(Path(snakemake.input[0]))
