"""Compares the boards of a campaign by the oracle's kernels; writes the table `boards` and prints a line."""

import sys
from pathlib import Path

from warplog.core.columns import BOARDS
from warplog.core.errors import WarplogError
from warplog.core.records import FamilyRecord
from warplog.judge import boards
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.tables.files import write_table


def main(plan: Plan, records: list[str], table: Path) -> None:
    if not records:
        raise WarplogError(
            "boards: this machine has no GPU to compare; run on the machine whose GPUs you mean"
        )
    rows = boards.rows([FamilyRecord.read(Path(path)) for path in records])
    write_table([{**row, **plan.source().labels()} for row in rows], BOARDS, table)
    print(f"  boards  {boards.summary(rows)}", file=sys.stderr, flush=True)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Plan.of_chosen(snakemake.params.plan),
            list(snakemake.params.records),
            Path(snakemake.output.csv).with_suffix(""),
        )
