"""Judges every pair of A/A rounds: how often the same code is called different, and the gap that counts."""

import sys
from pathlib import Path
from typing import Any

from warplog.judge import aa
from warplog.plan.plan import make_plan
from warplog.plan.script import job


def main(config: dict[str, Any], verdicts: Path, floors: Path, summary: Path) -> None:
    plan = make_plan(config)
    found = aa.judge_rounds(plan.root, plan.gpu)
    aa.write(found, verdicts, floors, summary)
    print(found.summary(), file=sys.stderr)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            snakemake.config,
            Path(snakemake.output.verdicts),
            Path(snakemake.output.floors),
            Path(snakemake.output.summary),
        )
