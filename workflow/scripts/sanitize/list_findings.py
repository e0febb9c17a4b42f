"""Writes the findings of compute-sanitizer to the table `sanitize` and prints them."""

from pathlib import Path

from warplog.core.errors import say
from warplog.measure.stages import sanitize
from warplog.plan import evaluate
from warplog.plan.plan import Plan
from warplog.plan.script import job

with job(snakemake.log[0]):
    plan, records = Plan.made_of(snakemake.params.plan), map(Path, snakemake.params.records)
    rows = evaluate.write_findings(plan, plan.source(), records, Path(snakemake.output.csv).parent)
    for line in sanitize.summary(rows).splitlines():
        say(line)
