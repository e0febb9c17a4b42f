"""Compares all pairs of A/A rounds: share of false verdicts, and the gap from which a difference counts."""

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
            Plan.of_chosen(snakemake.params.plan),
            Path(snakemake.output.verdicts),
            Path(snakemake.output.floors),
            Path(snakemake.output.summary),
        )
