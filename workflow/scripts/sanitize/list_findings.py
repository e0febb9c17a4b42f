"""Writes the findings of compute-sanitizer to the table `sanitize` and prints them."""

import sys
from pathlib import Path

from warplog.measure.stages import sanitize
from warplog.plan import evaluate
from warplog.plan.plan import Plan
from warplog.plan.script import job

if "snakemake" in globals():
    with job(snakemake.log[0]):
        plan, records = Plan.made_of(snakemake.params.plan), map(Path, snakemake.params.records)
        folder = Path(snakemake.output.csv).parent
        rows = evaluate.write_findings(plan, plan.source(), records, folder)
        print(sanitize.summary(rows), file=sys.stderr)
