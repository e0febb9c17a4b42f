"""Judges every pair of A/A rounds: how often the same code is called different, and the gap that counts."""

import sys
from pathlib import Path

from warplog import aa
from warplog.job import job


def main(folder: Path, gpu: str, verdicts: Path, floors: Path, summary: Path) -> None:
    found = aa.judge_rounds(folder, gpu)
    aa.write(found, verdicts, floors, summary)
    print(found.summary(), file=sys.stderr)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Path(snakemake.params.folder),
            snakemake.params.gpu,
            Path(snakemake.output.verdicts),
            Path(snakemake.output.floors),
            Path(snakemake.output.summary),
        )
