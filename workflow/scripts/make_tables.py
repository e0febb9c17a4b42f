"""Puts the records of all variants into the tables."""

import sys
from pathlib import Path
from typing import Any

from warplog import device, provenance, table_records, table_rows, tables
from warplog.job import job
from warplog.plan import make_plan
from warplog.records import read_json
from warplog.schema import read_yaml
from warplog.table_stages import told


def main(config: dict[str, Any], folder: Path) -> None:
    plan = make_plan(config)
    campaign = read_json(Path(plan.campaign()), "record")
    origin = "live" if plan.live else "recorded"
    source = table_records.Source(plan.root, plan.gpu, plan.arch, origin, campaign)
    gpu = provenance.gpu_of(campaign)
    peaks = device.peaks(gpu, read_yaml(Path("config/gpus.yaml"), "gpus"))
    rows = table_rows.make_rows(source, plan.families, plan.cases, plan.chosen, gpu, peaks)
    tables.write_tables(rows, folder)
    if plan.live:
        print(f"  tables  {campaign['campaign']}: {told(rows['stages'])}", file=sys.stderr, flush=True)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(snakemake.config, Path(snakemake.output.parquet[0]).parent)
