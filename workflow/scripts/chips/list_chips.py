"""Writes what each variant needs on the chips that it was compiled for, and prints how many are ok on each."""

from pathlib import Path

from warplog.core.errors import say
from warplog.plan import evaluate
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.tables import chips

with job(snakemake.log[0]):
    plan, records = Plan.made_of(snakemake.params.plan), map(Path, snakemake.params.records)
    rows = evaluate.write_chips(plan.source(), records, Path(snakemake.output.csv).parent)
    for line in chips.summary(rows):
        say(line)
