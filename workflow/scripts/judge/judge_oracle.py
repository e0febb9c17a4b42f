"""Compares the oracle's measurements with their known true values; writes the table `oracle`."""

from pathlib import Path

from warplog.analysis.quantities import Quantities
from warplog.core.columns import MEASUREMENTS, METRICS, ORACLE, Cell
from warplog.judge.oracle import Oracle
from warplog.machine import device
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.tables.files import as_frame, write_table
from warplog.tables.records import Source
from warplog.tables.rows import make_rows


def main(plan: Plan, folder: Path) -> None:
    source = plan.source()
    peaks = device.peaks(source.device, device.known_gpus(plan.project))
    rows = make_rows(source, plan.families, plan.cases, plan.chosen, source.device, peaks)
    numbers = Quantities(
        as_frame(rows["measurements"], MEASUREMENTS, "measurements"),
        as_frame(rows["metrics"], METRICS, "metrics"),
    )
    verdicts = Oracle(numbers, source.device.compute_capability).judge(plan.families[f] for f in plan.chosen)
    labels = labels_of(source, {str(row["commit"]) for row in rows["measurements"]})
    write_table([{**row, **labels} for row in verdicts], ORACLE, folder / "oracle")


def labels_of(source: Source, commits: set[str]) -> dict[str, Cell]:
    """Returns the origin columns: the campaign, or the commits of measurements outside of it."""
    others = sorted(commits - {"", str(source.campaign["commit"])})
    named = " and ".join(f"commit {commit[:7]}, not of the campaign" for commit in others)
    return {**source.labels(), **({"campaign": named} if named else {})}


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(Plan.made_of(snakemake.params.plan).oracle(), Path(snakemake.output.csv).parent)
