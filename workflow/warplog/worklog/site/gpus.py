"""Finished runs of several GPUs side by side: a figure for each family, and a page with each GPU beside the first.

The page links to the pages of each run and holds its style sheet and figures, so that it can be sent as one file.
"""

import base64
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from warplog.core.csv_text import csv_of_table
from warplog.core.errors import WarplogError
from warplog.core.files import write_text
from warplog.core.paths import own_command
from warplog.core.text import Table
from warplog.figures.shared import style
from warplog.records.verification import manifest
from warplog.tables import view
from warplog.tables.view import FigureTables
from warplog.worklog.html import Look, css, render
from warplog.worklog.site import speeds
from warplog.worklog.site.two_campaigns import (
    Names,
    Section,
    TwoCampaigns,
    lead,
    overview,
    sections,
    side_by_side,
)


def write(folders: Sequence[Path], output: Path) -> Path:
    """Writes the page of the runs, and figure and numbers of each family, to `output`; returns the page.

    Args:
        folders: results folders with tables, or those of recorded campaigns.

    Raises:
        WarplogError: if a table is missing, not readable or lacks a column, two runs are of one GPU, or no family is in
            two of the runs.
    """
    runs: dict[str, Path] = {}
    families: dict[str, dict[str, FigureTables]] = {}
    for folder in folders:
        tables = view.read_all(folder / "tables")
        gpu = str(next(iter(tables["variants"]["gpu"]), ""))
        if gpu in runs:
            why = f"{runs[gpu]} and {folder}: both are of the GPU {gpu}"
            raise WarplogError(f"{why}; compare them: `{own_command(f'compare {runs[gpu]} {folder}')}`")
        runs[gpu] = folder
        if (folder / manifest.NAME).is_file():  # the tables were written where the campaign was measured
            tables["measurements"]["origin"] = "recorded"
        names = list(map(str, tables["variants"]["family"].drop_duplicates()))
        for family, of_family in view.of_families(tables, folder / "tables", names).items():
            families.setdefault(family, {})[gpu] = of_family
    if all(len(campaigns) == 1 for campaigns in families.values()):
        raise WarplogError(f"{', '.join(map(str, folders))}: no family is in two of these runs")
    pictures = {}
    for family, campaigns in families.items():
        rows = speeds.data(campaigns)
        picture = pictures[family] = output / f"{re.sub(r'[^A-Za-z0-9_-]', '-', family)}.png"
        write_text(picture.with_suffix(".csv"), csv_of_table(rows))
        style.save(speeds.draw(rows), picture, picture.with_suffix(".svg"))
    write_text(output / "index.html", _page(runs, families, pictures, output))
    return output / "index.html"


def _page(
    runs: Mapping[str, Path],
    families: Mapping[str, Mapping[str, FigureTables]],
    pictures: Mapping[str, Path],
    output: Path,
) -> str:
    page_tables: list[Section] = []
    shown = {}
    pairs: dict[Names, dict[str, TwoCampaigns]] = {}
    links, rows = [], []
    for family, campaigns in families.items():
        first, *others = campaigns
        heading = f"{family} at {campaigns[first].case}"
        shown[heading] = f"data:image/png;base64,{base64.b64encode(pictures[family].read_bytes()).decode()}"
        for place, other in enumerate(others):
            pair = (first, other)
            both = side_by_side(campaigns[first], campaigns[other], pair)
            pairs.setdefault(pair, {})[heading] = both
            address = _address(runs[first], family, output, "#rung-{variant}")
            own = heading if place == 0 else f"{heading}: {first} beside {other}"
            page_tables += sections(own, both, address)
        for gpu, tables in campaigns.items():
            links.append(_address(runs[gpu], family, output))
            rows.append((f"{family} on {gpu}", str(tables.variants["campaign"].iloc[0])))
    pages = "Pages of each GPU", links, Table(("page", "campaign"), tuple(rows))
    first, *others = runs
    names = (first, others[0] if len(others) == 1 else "the other GPU")
    content = {"title": " beside ".join(runs), "lead": lead(names), "trail": (), "section": None}
    page_tables = [*(overview(both, pair) for pair, both in pairs.items()), *page_tables, pages]
    look = Look(Markup(f"<style>{css()}</style>"), Markup(""))  # noqa: S704
    return render("site.html.j2", look, **content, tables=page_tables, pictures=shown)


def _address(run: Path, family: str, output: Path, place: str = "") -> str:
    """Returns the address of a family's page, seen from `output`, at `place`; "" if there is none.

    A recorded campaign has no pages.
    """
    page = run / "worklog" / f"{family}.html"
    return quote(os.path.relpath(page.resolve(), output.resolve())) + place if page.is_file() else ""
