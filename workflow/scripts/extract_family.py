"""Reduces the ncu and nsys sessions of a family to named metrics, variant by variant."""

from pathlib import Path

from warplog.extract import stage
from warplog.plan.script import job

Paths = list[Path]


def main(
    ncu: Paths, nsys: Paths, cases: list[tuple[list[str], list[str]]], outputs: Paths, sources: Paths
) -> None:
    for record, timeline, (captured, traced), output in zip(ncu, nsys, cases, outputs, strict=True):
        stage.extract_record(record, timeline, captured, output, sources, traced)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        params = snakemake.params
        main(
            [Path(path) for path in snakemake.input.ncu],
            [Path(path) for path in snakemake.input.nsys],
            [(params.cases[variant], params.nsys_cases[variant]) for variant in params.cases],
            [Path(path) for path in snakemake.output],
            [Path(path) for path in snakemake.input.sources],
        )
