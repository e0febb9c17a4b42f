"""Lets the variants of a family whose times leave their steps open take turns with their parents."""

from pathlib import Path

from warplog.duel import open_steps
from warplog.plan.jobs import DuelJob
from warplog.plan.script import family_jobs, job, parameters

with job(snakemake.log[0]):
    jobs = family_jobs(snakemake, parameters(snakemake, DuelJob))
    open_steps.duel_steps(jobs, Path(snakemake.input.steps).parent)
