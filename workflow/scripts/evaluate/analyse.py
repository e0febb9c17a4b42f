"""Writes what is concluded from the campaign's tables as tables: verdicts, ladder, steps, changes and bounds."""

from pathlib import Path

from warplog.plan import evaluate
from warplog.plan.plan import Plan
from warplog.plan.script import job

with job(snakemake.log[0]):
    plan = Plan.of_chosen(snakemake.params.plan)
    others = list(map(Path, snakemake.input.recorded_ceilings))
    evaluate.write_analysis(
        plan.families, plan.chosen, Path(snakemake.output[0]).parent, others, snakemake.threads
    )
