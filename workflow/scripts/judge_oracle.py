"""Judges what was measured of kernels whose true answers are known, as the table `oracle`."""

from pathlib import Path
from typing import Any

from warplog.core.columns import MEASUREMENTS, METRICS, ORACLE
from warplog.core.schema import read_yaml
from warplog.judge.oracle import Oracle
from warplog.machine import device
from warplog.plan.plan import make_plan
from warplog.plan.script import job
from warplog.tables import files
from warplog.tables.quantities import Quantities
from warplog.tables.records import Source
from warplog.tables.rows import make_rows


def main(config: dict[str, Any], folder: Path) -> None:
    plan = make_plan(config).oracle()
    source = Source.of(plan)
    peaks = device.peaks(source.device, read_yaml(Path("config/gpus.yaml"), "gpus"))
    rows = make_rows(source, plan.families, plan.cases, plan.chosen, source.device, peaks)
    numbers = Quantities(
        files.as_frame(rows["measurements"], MEASUREMENTS, "measurements"),
        files.as_frame(rows["metrics"], METRICS, "metrics"),
    )
    verdicts = Oracle(numbers, source.device.compute_capability).judge(plan.families[f] for f in plan.chosen)
    labels = labels_of(source, {str(row["commit"]) for row in rows["measurements"]})
    files.write_table([{**row, **labels} for row in verdicts], ORACLE, folder / "oracle")


def labels_of(source: Source, commits: set[str]) -> dict[str, Any]:
    """Where the rows come from: the campaign, or the commits of a run of the oracle that is older or newer than it."""
    others = sorted(commits - {"", str(source.campaign["commit"])})
    named = " and ".join(f"commit {commit[:7]}, not of the campaign" for commit in others)
    return {**source.labels(), **({"campaign": named} if named else {})}


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(snakemake.config, Path(snakemake.output.csv).parent)
