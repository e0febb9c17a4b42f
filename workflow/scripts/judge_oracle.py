"""Judges what was measured of kernels whose true answers are known, as the table `oracle`."""

from pathlib import Path
from typing import Any

from warplog import device, tables
from warplog.oracle import Oracle
from warplog.plan import make_plan
from warplog.quantities import Quantities
from warplog.schema import read_yaml
from warplog.script import job
from warplog.table_columns import MEASUREMENTS, METRICS
from warplog.table_judged import ORACLE
from warplog.table_records import Source
from warplog.table_rows import make_rows


def main(config: dict[str, Any], folder: Path) -> None:
    plan = make_plan(config).oracle()
    source = Source.of(plan)
    peaks = device.peaks(source.device, read_yaml(Path("config/gpus.yaml"), "gpus"))
    rows = make_rows(source, plan.families, plan.cases, plan.chosen, source.device, peaks)
    numbers = Quantities(
        tables.as_frame(rows["measurements"], MEASUREMENTS, "measurements"),
        tables.as_frame(rows["metrics"], METRICS, "metrics"),
    )
    verdicts = Oracle(numbers, source.device.compute_capability).judge(plan.families[f] for f in plan.chosen)
    tables.write_table([{**row, **source.labels()} for row in verdicts], ORACLE, folder / "oracle")


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(snakemake.config, Path(snakemake.output.csv).parent)
