"""The page that sets the campaigns of a run side by side: for each family a figure, and each GPU beside the first.

It links to the pages of each GPU and holds its style sheet and figures, so that it can be sent as one file.
"""

import base64
from collections.abc import Mapping
from pathlib import Path

from markupsafe import Markup

from warplog.core.text import Table
from warplog.tables.view import FigureTables
from warplog.worklog.html import Look, css, render
from warplog.worklog.site.beside import Beside, Names, Section, beside, lead, overview, sections


def page(families: Mapping[str, Mapping[str, FigureTables]], pictures: Mapping[str, Path]) -> str:
    """Returns the HTML page.

    Args:
        families: the tables of each family on each GPU that has it, by family and GPU; at least one family.
        pictures: the figure of each family (PNG).
    """
    gpus = list(dict.fromkeys(gpu for campaigns in families.values() for gpu in campaigns))
    found: list[Section] = []
    shown = {}
    pairs: dict[Names, dict[str, Beside]] = {}
    for family, campaigns in families.items():
        first, *others = campaigns
        heading = f"{family} at {campaigns[first].case}"
        shown[heading] = _embedded(pictures[family])
        for place, other in enumerate(others):
            pair = (first, other)
            both = beside(campaigns[first], campaigns[other], pair)
            pairs.setdefault(pair, {})[heading] = both
            address = f"{first}/worklog/{family}.html#rung-{{variant}}"
            own = heading if place == 0 else f"{heading}: {first} beside {other}"
            found += sections(own, both, address)
    found = [*(overview(both, pair) for pair, both in pairs.items()), *found, _pages(families)]
    style = Markup(f"<style>{css()}</style>")  # noqa: S704
    title = " beside ".join(gpus)
    names = (gpus[0], gpus[1] if len(gpus) == 2 else "the other GPU")
    content = {"title": title, "lead": lead(names), "trail": (), "rung": None, "most": 0}
    return render("site.html.j2", Look(style, Markup("")), **content, tables=found, pictures=shown)


def _pages(families: Mapping[str, Mapping[str, FigureTables]]) -> Section:
    """Returns the links to the pages of each GPU, with the campaigns that they show."""
    pairs = [(family, gpu) for family, campaigns in families.items() for gpu in campaigns]
    rows = tuple(
        (f"{family} on {gpu}", str(families[family][gpu].variants["campaign"].iloc[0]))
        for family, gpu in pairs
    )
    links = [f"{gpu}/worklog/{family}.html" for family, gpu in pairs]
    return "Pages of each GPU", links, Table(("page", "campaign"), rows)


def _embedded(picture: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}"
