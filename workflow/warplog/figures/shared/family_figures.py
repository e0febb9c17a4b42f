"""Draws the figures of a family, those whose numbers, look or version changed since they were drawn."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warplog import figures
from warplog.core.csv_text import csv_of_table
from warplog.core.files import write_text
from warplog.core.hashing import sha256_of
from warplog.figures.shared import style
from warplog.figures.shared.settings import Settings
from warplog.records import door

if TYPE_CHECKING:
    from warplog.tables.view import FigureTables


def draw(data: "FigureTables", names: Sequence[str], settings: Settings, folder: Path, version: int) -> None:
    """Draws the named figures into `folder`, each with a CSV file of its numbers; deletes others.

    Those that can be about one variant are drawn for each of them, too, as `<figure>@<variant>`. A figure
    that has nothing to show is not drawn. `.drawn.json` holds a hash of what each was drawn from.

    Args:
        version: of the code that draws.
    """
    index = folder / ".drawn.json"
    former = door.decode(door.read_json(index), dict[str, str], str(index)) if index.is_file() else {}
    look = style.look(data, settings)
    suffixes = {".csv", *look.settings.suffixes}
    drawn = {}
    for name in figures.with_variants(names, data.variants["variant"]):
        numbers = figures.data(name, data)
        if numbers.empty:
            continue
        drawn[name] = sha256_of(version, csv_of_table(numbers), repr(look))
        there = all((folder / f"{name}{suffix}").is_file() for suffix in suffixes)
        if former.get(name) != drawn[name] or not there:
            figures.write(name, numbers, look, folder / name)
    write_text(index, door.as_json(drawn, indent=1) + "\n")
    for path in folder.glob("[a-z]*"):
        if path.stem not in drawn or path.suffix not in suffixes:
            path.unlink()
