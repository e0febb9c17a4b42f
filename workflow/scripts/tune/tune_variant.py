"""Searches the best parameters of one variant on this machine's GPU and writes them beside the kernel."""

from pathlib import Path

from warplog.duel import match
from warplog.measure import tuning
from warplog.plan.jobs import TuneJob
from warplog.plan.script import job, parameters

with job(snakemake.log[0]):
    search, given = parameters(snakemake, TuneJob), snakemake.input
    tuning.tune_variant(
        family_file=Path(search.family_file),
        variant=snakemake.wildcards.variant,
        gpu=snakemake.wildcards.gpu,
        arch=search.arch,
        settings=search.settings,
        time=search.time,
        campaign=Path(given.campaign),
        timer=Path(given.timer),
        record=Path(snakemake.output.record),
        cores=snakemake.threads,
        fight=match.of_jobs,
    )
