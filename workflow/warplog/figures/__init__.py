"""One module per figure, each with TITLE, NEEDS, data(tables) and draw(data, look); their captions; what they share.

`NEEDS` lists what a family must have for the figure to be planned; see warplog.plan.selection. A figure whose data()
returns no rows has nothing to show: it is not drawn. Nor is one of counters if every variant has a gap.
"""

import ast
import importlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from warplog.core.errors import WarplogError

if TYPE_CHECKING:
    import pandas as pd

    from warplog.figures.shared.style import Look
    from warplog.tables.view import FigureTables

OF_VARIANT = "@"  # in the name of a figure, before the variant that it is about
_FOLDER = Path(__file__).parent
_FOLDERS = (_FOLDER, _FOLDER / "special", _FOLDER / "traced")


@cache
def needs() -> dict[str, tuple[str, ...]]:
    """Returns NEEDS of every figure by name, without importing the figures, which would take a second."""
    return {
        path.stem: ast.literal_eval(node.value)
        for path in sorted(
            (path for folder in _FOLDERS for path in folder.glob("[a-z]*.py")), key=lambda path: path.stem
        )
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if node.targets[0].id == "NEEDS"
    }


def with_variants(names: Iterable[str], variants: Iterable[str]) -> list[str]:
    """Returns the names of figures, and `<figure>@<variant>` for those that can be about one variant, too."""
    names, variants = list(names), list(variants)
    each = [name for name in names if "accesses" in needs().get(name, ())]
    return [*names, *(f"{name}{OF_VARIANT}{variant}" for name in each for variant in variants)]


def module(figure: str) -> ModuleType:
    """Returns the module of a figure.

    Raises:
        WarplogError: if the figure does not exist; the message lists the figures.
    """
    name, figures = figure.partition(OF_VARIANT)[0], needs()
    if name not in figures:
        raise WarplogError(f"{figure}: no such figure; there are {', '.join(figures)}")
    folder = next(folder for folder in _FOLDERS if (folder / f"{name}.py").is_file())
    package = "" if folder == _FOLDER else f"{folder.name}."
    return importlib.import_module(f"warplog.figures.{package}{name}")


def data(figure: str, tables: "FigureTables") -> "pd.DataFrame":
    """Returns the numbers that a figure shows, of the family or of one variant; no rows if it has nothing to show.

    Raises:
        WarplogError: if the figure does not exist.
    """
    name, _, variant = figure.partition(OF_VARIANT)
    rows: pd.DataFrame = module(figure).data(tables, *([variant] if variant else []))
    is_bare = "counters" in needs()[name] and not (rows["gap"] == "").any()
    return rows.iloc[:0] if is_bare else rows


def write(figure: str, numbers: "pd.DataFrame", look: "Look", stem: Path) -> list[Path]:
    """Draws a figure from the `numbers` that `data` returned, and returns the files that it wrote.

    Their names are `stem` and the suffixes of the look's settings; `<stem>.csv` holds the numbers.
    """
    from warplog.core.csv_text import csv_of_table
    from warplog.core.files import write_text
    from warplog.figures.shared import style

    table = stem.with_name(f"{stem.name}.csv")
    files = [stem.with_name(f"{stem.name}{suffix}") for suffix in look.settings.suffixes]
    drawn = module(figure).draw(numbers, look)
    stem.parent.mkdir(parents=True, exist_ok=True)
    write_text(table, csv_of_table(numbers))
    style.save(drawn, *files, settings=look.settings)
    return [*files, table]
