"""The subcommand `warplog figures`: draws figures for a write-up from the tables, without a run of the workflow."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warplog.core.errors import WarplogError, note

if TYPE_CHECKING:
    import pandas as pd

    from warplog.catalog.family import Family
    from warplog.figures.shared.settings import Settings

_ABOUT = """\
Draws figures from the tables of a campaign, in the style and width of a document. The settings are those under
`figures` in config/config.yaml; options replace them. Prints the files that it writes.
"""
_SAVINGS = "predicted_savings"
_SETTINGS = ("style", "width_in", "font", "font_pt", "titles", "formats")


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", campaign: str) -> None:
    """Adds the subcommand to the parser; `campaign` is the text of help that it shares with others."""
    figures = commands.add_parser("figures", help="draw figures for a write-up, in its style and width")
    figures.description = _ABOUT
    figures.epilog = "example: warplog figures sgemm/ladder --style paper --width 3.3 --format pdf"
    named = f"family, family/figure such as sgemm/ladder, or {_SAVINGS} of all families (default: all)"
    figures.add_argument("names", nargs="*", metavar="NAME", help=named)
    figures.add_argument("--list", action="store_true", help="list the figures that there are, and draw none")
    figures.add_argument("--style", help="web, paper or dark")
    figures.add_argument("--width", type=float, dest="width_in", metavar="INCHES", help="width, such as 3.3")
    figures.add_argument("--font", help="name of an installed font")
    figures.add_argument("--font-size", type=float, dest="font_pt", metavar="POINTS")
    figures.add_argument(
        "--titles",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="title above and notes below, or both in a text file",
    )
    figures.add_argument(
        "--format", action="append", dest="formats", metavar="FORMAT", help="png, svg or pdf (repeatable)"
    )
    where = "folder to write to (default: figures)"
    figures.add_argument(
        "-o", dest="folder", type=Path, default=Path("figures"), metavar="FOLDER", help=where
    )
    figures.add_argument("--campaign", metavar="CAMPAIGN", help=campaign)
    figures.set_defaults(command="figures")


def run(options: argparse.Namespace, project: Path, folder: Path, families: Mapping[str, "Family"]) -> int:
    """Lists or draws the chosen figures, from the tables in `folder`.

    Raises:
        WarplogError: a setting or a font is not valid, a family or figure does not exist, or the tables are missing
            or not readable.
    """
    from warplog.tables import view

    tables = view.read_all(folder)
    chosen = _there(tables, families)
    if options.names:
        named = (pair for name in options.names if name != _SAVINGS for pair in _named(name, chosen))
        chosen = list(dict.fromkeys(named))
    settings = _settings(options, project)
    from warplog import figures
    from warplog.figures.campaign import predicted_savings
    from warplog.figures.shared import style

    for family in dict.fromkeys(family for family, _ in chosen):
        data = view.of_family(tables, folder, family)
        look = style.look(data, settings)
        for name in (figure for own, figure in chosen if own == family):
            numbers = figures.data(name, data)
            if options.list and len(numbers):
                print(f"{family}/{name}")
            elif len(numbers):
                print(*figures.write(name, numbers, look, options.folder / f"{family}-{name}"), sep="\n")
            elif f"{family}/{name}" in options.names:
                note(f"{family}/{name}: these tables have nothing for it to show; it is not drawn")
    if "mechanisms" in tables and (_SAVINGS in options.names or not options.names):
        if options.list:
            print(_SAVINGS)
        else:
            print(*predicted_savings.write(tables["mechanisms"], settings, options.folder), sep="\n")
    return 0


def _there(tables: Mapping[str, "pd.DataFrame"], families: Mapping[str, "Family"]) -> list[tuple[str, str]]:
    """Returns every pair of a family in the tables and one of its figures."""
    from warplog import figures
    from warplog.plan.selection import choose_figures

    own = {name: families[name] for name in sorted(set(tables["variants"]["family"]) & set(families))}
    recorded = {
        need: set(tables[name]["family"])
        for need, name in (("timelines", "tracks"), ("accesses", "access_lanes"))
        if name in tables
    }
    rows, drawn = tables["variants"], choose_figures(own, families, recorded)
    return [
        (name, figure)
        for name, chosen in drawn.items()
        for figure in figures.with_variants(chosen, rows.loc[rows["family"] == name, "variant"])
    ]


def _named(name: str, there: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yields the pairs that a name of a family or figure means; raises WarplogError if there are none."""
    family, _, figure = name.partition("/")
    pairs = [pair for pair in there if pair[0] == family and figure in ("", pair[1])]
    if not pairs:
        from warplog.core.schema import suggest

        existing = [f"{own}/{drawn}" for own, drawn in there] if figure else sorted({own for own, _ in there})
        raise WarplogError(
            f"{name}: no such {'figure' if figure else 'family'} here; {suggest(name, existing)}"
        )
    yield from pairs


def _settings(options: argparse.Namespace, project: Path) -> "Settings":
    """Returns the settings of the project's configuration with those of the options in their place.

    Raises:
        WarplogError: a setting is not valid.
    """
    from warplog.figures.shared.settings import settings_of
    from warplog.records import door
    from warplog.records.config import Config, configured

    figures = configured(project).figures
    given = {name: getattr(options, name) for name in _SETTINGS if getattr(options, name) is not None}
    return settings_of(door.decode({"figures": {**door.plain(figures), **given}}, Config, "options").figures)
