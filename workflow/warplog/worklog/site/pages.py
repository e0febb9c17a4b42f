"""A campaign as static pages that any web host serves: an index, a page per family, and one per step and case.

    index.html                        the campaign and its families
    <family>/index.html               the worklog of a family
    <family>/<variant>.html           a step, under an address that stays
    <family>/at-<case>.html           all variants at one case
    assets/, <family>/figures/        style sheet, charts, figures

All addresses are relative, so that the folder may lie anywhere.
"""

import math
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from warplog.core.columns import Row, number, text
from warplog.core.files import write_text
from warplog.core.numbers import rate_unit
from warplog.core.text import Table
from warplog.records.campaign import Campaign
from warplog.tables import published, regimes, view
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables, words
from warplog.worklog.html import Look, css, linked_script, render
from warplog.worklog.page import Page
from warplog.worklog.sentences import time_text
from warplog.worklog.site.beside import Section, beside, lead, overview, sections
from warplog.worklog.site.index import share_text, site_index

_UP = "../"
_STYLE = '<link rel="stylesheet" href="{}assets/style.css">'


class Site:
    """The folder of a site; `add` writes a family, `finish` the index.

    `library` is the JavaScript that draws charts: see `warplog.worklog.pictures.charts.library`.
    """

    def __init__(self, folder: Path, library: str) -> None:
        self.folder = folder
        self._families: list[tuple[Page, FigureTables]] = []
        self._more: list[tuple[str, str]] = []
        write_text(folder / "assets" / "style.css", css())
        write_text(folder / "assets" / "charts.js", library)

    def add(self, page: Page, tables: FigureTables) -> None:
        """Writes the pages of a family, with copies of its figures."""
        folder = self.folder / page.family
        style = Markup(_STYLE.format(_UP))  # noqa: S704
        script = linked_script(page, f"{_UP}assets/charts.js")
        write_text(folder / "index.html", render("page.html.j2", Look(style, script, _UP), page=page))
        pictures = [*page.key, *([page.ladder] if page.ladder else []), *page.pictures]
        (folder / "figures").mkdir(exist_ok=True)
        for picture in pictures:
            shutil.copyfile(picture.path, folder / "figures" / picture.path.name)
        self._steps(page, self._look(_UP))
        self._cases(page, tables, self._look(_UP))
        self._families.append((page, tables))

    def beside(self, folder: Path) -> None:
        """Writes a page that sets the families added so far beside those of the campaign with the tables in `folder`.

        Nothing is written if that campaign is of the same GPU or shares no family.

        Raises:
            WarplogError: if a table is missing, not readable or lacks a column.
        """
        read = view.read_all(folder)
        known = set(read["variants"]["family"])
        pairs = [(page, ours) for page, ours in self._families if page.family in known]
        if not pairs:
            return
        theirs = {page.family: view.of_family(read, folder, page.family) for page, _ in pairs}
        gpus = [
            str(tables.measurements["gpu"].iloc[0]) for tables in (pairs[0][1], theirs[pairs[0][0].family])
        ]
        if gpus[0] == gpus[1]:
            return
        names = (gpus[0], gpus[1])
        both = {page.family: beside(ours, theirs[page.family], names) for page, ours in pairs}
        headings = {page.family: f"{page.family} at {ours.case}" for page, ours in pairs}
        found = [overview({headings[name]: one for name, one in both.items()}, names)]
        for name, one in both.items():
            found += sections(headings[name], one, f"{name}/{{variant}}.html")
        title = f"{gpus[0]} beside {gpus[1]}"
        content = {
            "title": title,
            "lead": lead(names),
            "trail": (("Campaign", "index.html"),),
            "tables": found,
        }
        address = f"beside-{re.sub(r'[^A-Za-z0-9_.-]', '-', folder.parent.name)}.html"
        write_text(
            self.folder / address, render("site.html.j2", self._look("./"), rung=None, most=0, **content)
        )
        self._more.append((title, address))

    @staticmethod
    def _look(root: str) -> Look:
        """Returns the look of a page without charts whose path to the site's folder is `root`."""
        return Look(Markup(_STYLE.format(root)), Markup(""), root)  # noqa: S704

    def finish(self, campaign: Campaign) -> None:
        """Writes the index of the campaign."""
        families = [(page.title, len(page.rungs), tables) for page, tables in self._families]
        more: Section | None = None
        if self._more:
            rows = tuple((title,) for title, _ in self._more)
            more = (
                "Beside other campaigns",
                [address for _, address in self._more],
                Table(("campaigns",), rows),
            )
        text = site_index(families, more, campaign, self._look("./"))
        write_text(self.folder / "index.html", text)

    def _steps(self, page: Page, look: Look) -> None:
        most = max([100.0, *(rung.percent for rung in page.rungs if rung.percent is not None)])
        for rung in page.rungs:
            trail = (("Campaign", f"{_UP}index.html"), (page.family, f"index.html#rung-{rung.name}"))
            content = {"title": f"{page.family}: {rung.name}", "lead": "", "trail": trail, "tables": ()}
            text = render("site.html.j2", look, rung=rung, most=most, **content)
            write_text(self.folder / page.family / f"{rung.name}.html", text)

    def _cases(self, page: Page, tables: FigureTables, look: Look) -> None:
        rows = as_rows(tables.measurements.sort_values("size", kind="stable"))
        names = list(dict.fromkeys(str(row["case"]) for row in rows))
        for case in names:
            mine = {str(row["variant"]): row for row in rows if row["case"] == case}
            found = [mine[rung.name] for rung in page.rungs if rung.name in mine]
            links = [f"{row['variant']}.html" for row in found]
            others = Table(("other cases",), tuple((other,) for other in names if other != case))
            content = {
                "title": f"{page.family} at {case}",
                "lead": " ".join(filter(None, (f"All variants at {case}. {page.about}.", page.regimes))),
                "trail": (("Campaign", f"{_UP}index.html"), (page.family, "index.html")),
                "tables": (
                    ("", links, _case_table(found, tables)),
                    ("", [case_file(other) for other in names if other != case], others),
                ),
            }
            text = render("site.html.j2", look, rung=None, most=0, **content)
            write_text(self.folder / page.family / case_file(case), text)


def case_file(case: str) -> str:
    """Returns the name of the page of a case."""
    return f"at-{re.sub(r'[^A-Za-z0-9_.-]', '-', case)}.html"


def _case_table(rows: Sequence[Row], tables: FigureTables) -> Table:
    """Returns time, spread, speed and share of the baseline of each variant, and its time in a long run."""
    quantity = tables.quantity()
    unit, factor = rate_unit(quantity.unit, (number(row, quantity.column) for row in rows))
    long = "sustained_us" if any(number(row, "sustained_us") > 0 for row in rows) else "hot_us"
    lines = []
    for row in rows:
        if row["status"] != "ok":
            lines.append((str(row["variant"]), words(row["status"], text(row, "own_limits")), "", "", "", ""))
            continue
        ends = " to ".join(_time(end) for end in regimes.interval_us(row))
        rate = published.speed(number(row, quantity.column) * factor, "ok")
        share = share_text(number(row, "ratio_to_baseline"))
        lines.append(
            (
                str(row["variant"]),
                _time(number(row, "median_us")),
                ends,
                rate,
                share,
                _time(number(row, long)),
            )
        )
    titles = ("variant", f"time {regimes.where_timed(rows)}", regimes.interval_words(rows), unit,
              f"% of {rows[0].get('baseline') or 'the baseline'}", f"time {regimes.BACK_TO_BACK}")  # fmt: skip
    return Table(titles, tuple(lines), frozenset({1, 2, 3, 4, 5}))


def _time(us: float) -> str:
    return "" if math.isnan(us) else time_text(us)
