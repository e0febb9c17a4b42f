"""A campaign as static pages that any web host serves: an index, a page per family, and one per step and case.

    index.html                        the campaign and its families
    <family>/index.html               the worklog of a family
    <family>/<variant>.html           a step, under an address that stays
    <family>/at-<case>.html           all variants at one case
    assets/, <family>/figures/        style sheet, charts, figures

All addresses are relative, so that the folder may lie anywhere.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from warplog.core.files import write_text
from warplog.core.text import Table
from warplog.records.campaign import Campaign
from warplog.tables import regimes, view
from warplog.tables.view import FigureTables, words
from warplog.worklog.cells import Cells
from warplog.worklog.html import Look, css, linked_script, render, shares
from warplog.worklog.page import Page
from warplog.worklog.site.index import site_index
from warplog.worklog.site.two_campaigns import Grid, Section, lead, overview, sections, side_by_side

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
        write_text(
            folder / "index.html", render("page.html.j2", Look(style, script, _UP), page=page, alone=False)
        )
        pictures = [*page.key, *([page.ladder] if page.ladder else []), *page.pictures]
        (folder / "figures").mkdir(exist_ok=True)
        for picture in pictures:
            shutil.copyfile(picture.path, folder / "figures" / picture.path.name)
        self._steps(page, self._look(_UP))
        self._cases(page, self._look(_UP))
        self._families.append((page, tables))

    def add_side_by_side(self, folder: Path) -> None:
        """Writes a page that sets the families added so far beside those of the campaign with the tables in `folder`.

        Nothing is written if that campaign is of the same GPU or shares no family.

        Raises:
            WarplogError: if a table is missing, not readable or lacks a column.
        """
        read = view.read_all(folder)
        families = set(read["variants"]["family"])
        pairs = [(page, ours) for page, ours in self._families if page.family in families]
        if not pairs:
            return
        theirs = view.of_families(read, folder, [page.family for page, _ in pairs])
        gpus = [
            str(tables.measurements["gpu"].iloc[0]) for tables in (pairs[0][1], theirs[pairs[0][0].family])
        ]
        if gpus[0] == gpus[1]:
            return
        names = (gpus[0], gpus[1])
        both = {page.family: side_by_side(ours, theirs[page.family], names) for page, ours in pairs}
        headings = {page.family: f"{page.family} at {ours.case}" for page, ours in pairs}
        page_tables = [overview({headings[name]: family for name, family in both.items()}, names)]
        for name, family in both.items():
            page_tables += sections(headings[name], family, f"{name}/{{variant}}.html")
        title = f"{gpus[0]} beside {gpus[1]}"
        content = {
            "title": title,
            "lead": lead(names),
            "trail": (("Campaign", "index.html"),),
            "tables": page_tables,
        }
        address = f"beside-{re.sub(r'[^A-Za-z0-9_.-]', '-', folder.parent.name)}.html"
        write_text(self.folder / address, render("site.html.j2", self._look("./"), section=None, **content))
        self._more.append((title, address))

    @staticmethod
    def _look(root: str) -> Look:
        """Returns the look of a page without charts whose path to the site's folder is `root`."""
        return Look(Markup(_STYLE.format(root)), Markup(""), root)  # noqa: S704

    def finish(self, campaign: Campaign) -> None:
        """Writes the index of the campaign."""
        families = [(page.title, len(page.sections), tables) for page, tables in self._families]
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
        most = max([100.0, *shares(page.sections)])
        for section in page.sections:
            trail = (("Campaign", f"{_UP}index.html"), (page.family, f"index.html#rung-{section.name}"))
            content = {"title": f"{page.family}: {section.name}", "lead": "", "trail": trail, "tables": ()}
            text = render("site.html.j2", look, section=section, page=page, most=most, alone=True, **content)
            write_text(self.folder / page.family / f"{section.name}.html", text)

    def _cases(self, page: Page, look: Look) -> None:
        for case, rows in page.timed.items():
            timed = [rows[section.name] for section in page.sections if section.name in rows]
            links = [f"{row.variant}.html" for row in timed]
            names = [other for other in page.timed if other != case]
            others = Table(("other cases",), tuple((other,) for other in names))
            content = {
                "title": f"{page.family} at {case}",
                "lead": f"All variants at {case}; {page.facts.gpu_name}, campaign {page.facts.campaign}.",
                "trail": (("Campaign", f"{_UP}index.html"), (page.family, "index.html")),
                "tables": (
                    ("", links, _case_table(timed, page)),
                    ("", [case_file(other) for other in names], others),
                ),
            }
            text = render("site.html.j2", look, section=None, **content)
            write_text(self.folder / page.family / case_file(case), text)


def case_file(case: str) -> str:
    """Returns the name of the page of a case."""
    return f"at-{re.sub(r'[^A-Za-z0-9_.-]', '-', case)}.html"


def _case_table(rows: Sequence[Cells], page: Page) -> Grid:
    """Returns time, spread, speed and share of the baseline of each variant, and its time in a long run."""
    lines: list[tuple[object, ...]] = []
    for row in rows:
        if row.status != "ok":
            lines.append((row.variant, words(row.status, row.own_limits), *[""] * 5))
            continue
        several = float(str(row.raw("processes"))) > 1
        ends = (row.process_min_us, row.process_max_us) if several else (row.q1_us, row.q3_us)
        long = row.sustained_us or row.hot_us
        numbers = (row.median_us, *ends, row[page.speed], row.ratio_to_baseline, long)
        lines.append((row.variant, *(number or "" for number in numbers)))
    when = "at rest" if page.method.is_at_rest else "with a cold L2"
    titles = (
        *("variant", f"time {when}", "least", "most", "speed"),
        *(f"of {page.baseline or 'the baseline'}", f"time {regimes.BACK_TO_BACK}"),
    )
    notes = ("Least and most: medians of processes; quartiles of a single process.",)
    return Grid(titles, tuple(lines), frozenset(range(1, len(titles))), notes)
