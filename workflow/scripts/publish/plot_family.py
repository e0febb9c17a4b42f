"""Draws the figures of a family from the tables: PNG, SVG, and a CSV file with the numbers.

A figure is only redrawn if its numbers, look or code changed; `.drawn.json` contains their hashes.
"""

from collections.abc import Sequence
from pathlib import Path

from warplog import figures
from warplog.core.csv_text import csv_of_table
from warplog.core.files import write_text
from warplog.core.records import read_json, sha256_file, sha256_of, write_json
from warplog.plan.script import job, keep_digests
from warplog.plotting import style
from warplog.tables import view

SUFFIXES = (".png", ".svg", ".csv")


def main(names: Sequence[str], tables: Path, code: Sequence[Path], folder: Path) -> None:
    shared = [sha256_file(path) for path in code if path.parent.name != "figures"]
    index = folder / ".drawn.json"
    former = read_json(index) if index.is_file() else {}
    data = view.of_family(view.read_all(tables), tables, folder.name)
    look = style.look(data)
    drawn = {}
    for name in names:
        module = figures.module(name)
        numbers = module.data(data)
        text = csv_of_table(numbers)
        drawn[name] = sha256_of(shared, sha256_file(Path(str(module.__file__))), text, repr(look))
        paths = {suffix: folder / f"{name}{suffix}" for suffix in SUFFIXES}
        if former.get(name) != drawn[name] or not all(path.is_file() for path in paths.values()):
            write_text(paths[".csv"], text)
            style.save(module.draw(numbers, look), paths[".png"], paths[".svg"])
    write_json(index, drawn)
    for path in folder.glob("[a-z]*"):
        if path.stem not in drawn:
            path.unlink()


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            snakemake.params.figures,
            Path(snakemake.input.tables[0]).parent,
            [Path(path) for path in snakemake.input.code],
            Path(snakemake.output[0]),
        )
        keep_digests(snakemake)
