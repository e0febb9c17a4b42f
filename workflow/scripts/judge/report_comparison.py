"""Prints the verdicts of a comparison; fails if there is a confirmed regression or nothing to compare."""

import sys
from collections.abc import Sequence
from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.core.records import read_json
from warplog.plan.script import job


def main(verdicts: Sequence[Path]) -> None:
    failed = []
    for path in verdicts:
        found = read_json(path)
        for line in found["claims"]:
            print(f"  {line}", file=sys.stderr)
        print(found["summary"], file=sys.stderr)
        failed += [path.with_suffix(".md")] if found["status"] else []
    if failed:
        raise WarplogError(f"{failed[0]}: a confirmed regression, or nothing to compare")


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main([Path(path) for path in snakemake.input])
