"""Judges every pair of A/A rounds: how often the same code is called different, and the gap that counts."""

import sys
from pathlib import Path

from warplog.judge import aa
from warplog.plan.plan import Plan
from warplog.plan.script import job


def main(plan: Plan, verdicts: Path, floors: Path, summary: Path) -> None:
    found = aa.judge_rounds(plan.root, plan.gpu)
    aa.write(found, verdicts, floors, summary)
    print(found.summary(), file=sys.stderr)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Plan.read(Path(snakemake.input.plan)),
            Path(snakemake.output.verdicts),
            Path(snakemake.output.floors),
            Path(snakemake.output.summary),
        )
