"""Draws figures of a family from a folder of tables, as the rule `plot_family` does."""

from collections.abc import Sequence
from pathlib import Path

from warplog.figures.shared import family_figures
from warplog.figures.shared.settings import WEB, Settings
from warplog.tables import view


def plot(
    names: Sequence[str], tables: Path, folder: Path, settings: Settings = WEB, version: int = 1
) -> None:
    """Draws the named figures into `folder`, which has the name of the family."""
    family_figures.draw(view.load(tables, folder.name), names, settings, folder, version)
