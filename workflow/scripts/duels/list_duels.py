"""Writes the verdicts of the duels to the table `duels`, and prints how many steps they decide."""

from pathlib import Path

from warplog.core.errors import say
from warplog.plan import evaluate
from warplog.plan.plan import Plan
from warplog.plan.script import job

with job(snakemake.log[0]):
    plan = Plan.made_of(snakemake.params.plan)
    rows = evaluate.write_duels(plan, plan.source(), Path(snakemake.output.csv).parent)
    decided = sum(row.word in ("FASTER", "SLOWER", "SAME") for row in rows)
    say(f"  duels   {decided} of {len(rows)} steps within noise are decided")
