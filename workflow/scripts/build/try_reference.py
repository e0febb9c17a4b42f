"""Tries make_inputs and reference of the chosen families on the CPU."""

import sys
from collections.abc import Sequence
from pathlib import Path

from warplog.catalog.family import load_family
from warplog.core.errors import WarplogError, say
from warplog.core.text import listed
from warplog.measure import trial
from warplog.plan.jobs import TrialJob
from warplog.plan.script import job, parameters


def main(family_files: Sequence[str]) -> None:
    mistakes, right = [], []
    for file in family_files:
        family = load_family(Path(file))
        try:
            why = trial.try_reference(family)
        except WarplogError as error:
            mistakes.append(error)
            continue
        if why:
            say(f"  try     reference.py of {family.name}  not tried: {why}")
        else:
            right.append(family.name)
    if right:
        say(f"  try     reference.py of {listed(right)}  ok")
    for mistake in mistakes[:-1]:
        say(f"error: {mistake}")
    if mistakes:
        raise mistakes[-1]


if "snakemake" in globals():
    sys.dont_write_bytecode = True  # beside the files of a family
    with job(snakemake.log[0]):
        main(parameters(snakemake, TrialJob).family_files)
