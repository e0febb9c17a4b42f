"""Fails if a variant is not ok: for `strict`."""

from collections.abc import Iterable
from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.core.text import listed
from warplog.judge.summary.rows import Summary, Trouble
from warplog.judge.summary.shown import words
from warplog.plan.plan import Plan
from warplog.plan.script import job


def main(troubles: Iterable[Trouble]) -> None:
    failures = [one for one in troubles if one.is_failure]
    found = dict.fromkeys(f"{one.family}/{one.variant} ({words(one.code)})" for one in failures)
    if found:
        raise WarplogError(f"strict: not ok: {listed(list(found))}")


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Summary.read(Path(snakemake.input[0])).troubles
            if snakemake.rule == "strict"
            else Plan.of_chosen(snakemake.params.plan).known().troubles
        )
