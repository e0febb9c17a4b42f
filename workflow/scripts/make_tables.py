"""Puts the records of all variants into the tables."""

import sys
from pathlib import Path
from typing import Any

from warplog.core.schema import read_yaml
from warplog.machine import device
from warplog.plan.plan import make_plan
from warplog.plan.script import job
from warplog.tables import files
from warplog.tables.records import Source
from warplog.tables.rows import make_rows
from warplog.tables.stages import told


def main(config: dict[str, Any], folder: Path) -> None:
    plan = make_plan(config)
    source = Source.of(plan)
    peaks = device.peaks(source.device, read_yaml(Path("config/gpus.yaml"), "gpus"))
    rows = make_rows(source, plan.families, plan.cases, plan.chosen, source.device, peaks)
    files.write_tables(rows, folder)
    if plan.live:
        print(f"  tables  {source.campaign['campaign']}: {told(rows['stages'])}", file=sys.stderr, flush=True)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(snakemake.config, Path(snakemake.output.parquet[0]).parent)
