"""Compares all pairs of A/A rounds: share of false verdicts, and the gap from which a difference counts."""

from pathlib import Path

from warplog.core.errors import say
from warplog.judge import aa
from warplog.plan.plan import Plan
from warplog.plan.script import job

with job(snakemake.log[0]):
    plan, out = Plan.of_chosen(snakemake.params.plan), snakemake.output
    judged = aa.judge_rounds(plan.root, plan.gpu)
    aa.write(judged, Path(out.verdicts), Path(out.floors), Path(out.summary))
    for line in judged.summary().splitlines():
        say(line)
