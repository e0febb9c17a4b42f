"""Puts what compute-sanitizer found into a table, and says it."""

import sys
from pathlib import Path

from warplog import sanitize, tables
from warplog.records import read_json
from warplog.script import job
from warplog.table_columns import SANITIZE


def main(records: list[Path], campaign: Path, table: Path) -> None:
    name = read_json(campaign, "record")["campaign"]
    found = [sanitize.rows(read_json(path, "record")) for path in records]
    rows = [{**row, "campaign": name} for rows in found for row in rows]
    tables.write_table(rows, SANITIZE, table.with_suffix(""))
    print(sanitize.summary(rows), file=sys.stderr)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            [Path(path) for path in snakemake.input.records],
            Path(snakemake.input.campaign),
            Path(snakemake.output.csv),
        )
