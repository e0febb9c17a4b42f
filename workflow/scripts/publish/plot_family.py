"""Draws the figures of a family from the tables: PNG, SVG and others, and a CSV file with the numbers.

A figure is only redrawn if its numbers, look or code changed; `.drawn.json` contains their hashes. One that has nothing
to show is not drawn.
"""

from collections.abc import Sequence
from pathlib import Path

from warplog import figures
from warplog.core.csv_text import csv_of_table
from warplog.core.files import write_text
from warplog.core.hashing import sha256_file, sha256_of
from warplog.figures.shared import style
from warplog.figures.shared.settings import WEB, Settings, for_pages, settings_of
from warplog.plan.script import job
from warplog.records import door
from warplog.records.config import FigureSettings
from warplog.tables import view


def main(
    names: Sequence[str], tables: Path, code: Sequence[Path], folder: Path, settings: Settings = WEB
) -> None:
    shared = [sha256_file(path) for path in code if path.parent.name != "figures"]
    index = folder / ".drawn.json"
    former = door.decode(door.read_json(index), dict[str, str], str(index)) if index.is_file() else {}
    data = view.of_family(view.read_all(tables), tables, folder.name)
    look = style.look(data, settings)
    suffixes = {".csv", *look.settings.suffixes}
    drawn = {}
    for name in names:
        numbers = figures.data(name, data)
        if numbers.empty:
            continue
        source, text = Path(str(figures.module(name).__file__)), csv_of_table(numbers)
        drawn[name] = sha256_of(shared, sha256_file(source), text, repr(look))
        there = all((folder / f"{name}{suffix}").is_file() for suffix in suffixes)
        if former.get(name) != drawn[name] or not there:
            figures.write(name, numbers, look, folder / name)
    write_text(index, door.as_json(drawn, indent=1) + "\n")
    for path in folder.glob("[a-z]*"):
        if path.stem not in drawn or path.suffix not in suffixes:
            path.unlink()


if "snakemake" in globals():
    with job(snakemake.log[0]):
        settings = door.decode(snakemake.params.settings, FigureSettings, "params.settings")
        main(
            snakemake.params.figures,
            Path(snakemake.input.tables[0]).parent,
            [Path(path) for path in snakemake.input.code],
            Path(snakemake.output[0]),
            for_pages(settings_of(settings)),
        )
