"""Extracts the metrics of each variant from the ncu and nsys sessions of a family."""

from pathlib import Path

from warplog.extract import stage
from warplog.plan.jobs import ExtractJob
from warplog.plan.script import job, parameters

with job(snakemake.log[0]):
    cases, reports = parameters(snakemake, ExtractJob), snakemake.input
    ncu, nsys, record = Path(reports.ncu), Path(reports.nsys), Path(snakemake.output[0])
    stage.extract_family(ncu, nsys, cases.ncu, cases.nsys, record, list(map(Path, reports.sources)))
