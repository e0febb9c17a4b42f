"""Publishes a campaign from its tables and figures: pages, a site, MLflow runs."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from warplog import worklog
from warplog.core import paths
from warplog.core.errors import WarplogError, note
from warplog.core.files import write_text
from warplog.plan.files import Files
from warplog.plan.plan import Plan
from warplog.records import door, stages
from warplog.tables import view
from warplog.tables.verified_records import build_record
from warplog.track import address, artefacts, links, log
from warplog.worklog.site import Site

if TYPE_CHECKING:
    from warplog.tables.view import FigureTables
    from warplog.worklog.page import Page

_TABLES = paths.RESULTS / "tables"


def write_page(plan: Plan, family: str, charts: Path, html: Path, latex: Path) -> None:
    """Writes the page of a family as HTML, as Markdown beside it, and its tables and figures as LaTeX.

    Args:
        charts: the JavaScript of interactive charts.
        latex: the folder of the LaTeX files.

    Raises:
        WarplogError: the tables are those of another campaign, or a file cannot be written.
    """
    page = _page(plan, family, view.load(_TABLES, family))
    write_text(html, worklog.html(page, charts.read_text(encoding="utf-8")))
    write_text(html.with_suffix(".md"), worklog.markdown(page, html.parent))
    for name, text in worklog.latex(page).items():
        write_text(latex / f"{name}.tex", text)


def write_site(plan: Plan, charts: Path, folder: Path) -> None:
    """Writes the pages of all families as a static site, and compares them with the recorded campaigns."""
    families = view.of_families(view.read_all(_TABLES), _TABLES, plan.chosen)
    site = Site(folder, charts.read_text(encoding="utf-8"))
    for family, data in families.items():
        site.add(_page(plan, family, data), data)
    for tables in sorted(paths.RECORDED.glob("[!.]*/tables")):
        site.add_side_by_side(tables)
    site.finish(plan.source().campaign)


def log_runs(plan: Plan, uri: str, attempt: int, record: Path, links_page: Path, processes: int) -> None:
    """Logs the campaign to MLflow, and writes what is in the store then, and a page of links to it.

    Args:
        uri: of the configuration; the environment may name another store.
        attempt: number of the attempt, for the record.
        processes: how many make what is logged.
    """
    store, campaign = address.tracking_uri(uri), plan.source().campaign
    built = partial(build_record, plan.root, plan.arch)
    files = {
        name: partial(artefacts.collect, plan.root, plan.gpu, plan.families[name], variants, built)
        for name, variants in plan.chosen.items()
    }
    logged = log.log_campaign(_TABLES, campaign, files, store, note, attempt, processes)
    write_text(links_page, links.page(logged, store))
    door.write(record, logged)


def _page(plan: Plan, family: str, data: "FigureTables") -> "Page":
    pictures = sorted(stages.FIGURES.at(paths.RESULTS, family=family).glob("*.png"))
    files = Files(plan)
    machine_code = {v.name: files.build_record(v).with_name("kernel.sass") for v in plan.chosen[family]}
    campaign = plan.source().campaign
    if others := set(data.variants["campaign"]) - {campaign.campaign}:
        raise WarplogError(
            f"{_TABLES}: hold {', '.join(map(str, others))}, not {campaign.campaign}; delete them and run again"
        )
    return worklog.gather(
        plan.families[family], data, campaign, pictures, paths.WORKFLOW / "report", machine_code
    )
