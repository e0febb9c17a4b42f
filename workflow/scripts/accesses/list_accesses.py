"""Writes the traced accesses to the tables `accesses` and `traced_kernels`, and prints what differs from counters."""

from pathlib import Path

from warplog.core.errors import say
from warplog.plan import evaluate
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.tables.traced import accesses

with job(snakemake.log[0]):
    plan = Plan.made_of(snakemake.params.plan)
    rows = evaluate.write_accesses(plan, plan.source(), Path(snakemake.output.parquet).parent)
    for line in accesses.summary(rows).splitlines():
        say(line)
