"""Writes what each variant needs on the chips that it was compiled for, and how many are ok on each.

That is printed if a build is of this run, else it is in the log.
"""

from pathlib import Path

from warplog.core.errors import note, say
from warplog.plan import evaluate
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.tables import chips

with job(snakemake.log[0]):
    plan, records = Plan.made_of(snakemake.params.plan), list(map(Path, snakemake.params.records))
    are_recorded = not plan.live and all(path.is_relative_to(plan.root) for path in records)
    rows = evaluate.write_chips(plan, plan.source(), records, Path(snakemake.output.csv).parent)
    for line in chips.summary(rows):
        (note if are_recorded else say)(line)
