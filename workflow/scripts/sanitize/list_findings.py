"""Writes the findings of compute-sanitizer to the table `sanitize` and prints them."""

import sys
from collections.abc import Mapping
from pathlib import Path

from warplog.core.columns import SANITIZE
from warplog.core.records import FamilyRecord, read_json
from warplog.measure import sanitize
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.tables.files import write_table


def main(records: list[Path], chosen: Mapping[str, set[str]], campaign: Path, table: Path) -> None:
    name = read_json(campaign, "record")["campaign"]
    found = [
        sanitize.rows(record)
        for path in records
        for variant, record in FamilyRecord.read(path).variants.items()
        if variant in chosen[path.stem]
    ]
    rows = [{**row, "campaign": name} for rows in found for row in rows]
    write_table(rows, SANITIZE, table.with_suffix(""))
    print(sanitize.summary(rows), file=sys.stderr)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        plan = Plan.made_of(snakemake.params.plan)
        both = {**plan.oracle().chosen, **plan.chosen}
        main(
            [Path(path) for path in snakemake.params.records],
            {family: {variant.name for variant in variants} for family, variants in both.items()},
            Path(snakemake.input.campaign),
            Path(snakemake.output.csv),
        )
