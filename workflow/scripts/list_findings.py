"""Puts what compute-sanitizer found into a table, and says it."""

import sys
from pathlib import Path

from warplog.core.columns import SANITIZE
from warplog.core.records import read_json
from warplog.measure import sanitize
from warplog.plan.script import job
from warplog.tables import files


def main(records: list[Path], campaign: Path, table: Path) -> None:
    name = read_json(campaign, "record")["campaign"]
    found = [sanitize.rows(read_json(path, "record")) for path in records]
    rows = [{**row, "campaign": name} for rows in found for row in rows]
    files.write_table(rows, SANITIZE, table.with_suffix(""))
    print(sanitize.summary(rows), file=sys.stderr)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            [Path(path) for path in snakemake.input.records],
            Path(snakemake.input.campaign),
            Path(snakemake.output.csv),
        )
