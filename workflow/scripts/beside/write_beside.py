"""Writes the page that sets the campaigns of the run side by side."""

from collections.abc import Sequence
from pathlib import Path

from warplog.core.files import write_text
from warplog.plan.script import job
from warplog.tables import view
from warplog.worklog.site import gpus as gpus_page


def main(folder: Path, figures: Sequence[Path], gpus: Sequence[str], output: Path) -> None:
    tables = view.read_all(folder)
    pictures = {path.stem: path for path in figures}
    families = {family: view.on_gpus(tables, folder, family, gpus) for family in pictures}
    write_text(output, gpus_page.page(families, pictures))


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Path(snakemake.input.tables[0]).parent,
            [Path(path) for path in snakemake.input.figures],
            snakemake.params.gpus,
            Path(snakemake.output[0]),
        )
