"""Tries make_inputs and reference of the chosen families on the CPU."""

import sys
from pathlib import Path

from warplog.measure import trial
from warplog.plan.jobs import TrialJob
from warplog.plan.script import job, parameters

sys.dont_write_bytecode = True  # beside the files of a family
with job(snakemake.log[0]):
    trial.try_references(map(Path, parameters(snakemake, TrialJob).family_files))
