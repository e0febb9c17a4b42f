"""The first page of a campaign: its families, with their fastest variants, and links to everything else.

It is the index of a site, and results/index.html, the page to open after a run.
"""

from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from warplog.core.columns import text
from warplog.core.text import Table
from warplog.records.campaign import Campaign
from warplog.tables import regimes
from warplog.tables.conclusions import Place, rows
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables
from warplog.worklog.cells import Cells
from warplog.worklog.html import Look, css, render
from warplog.worklog.site.two_campaigns import Grid, Section


def page(
    families: Sequence[FigureTables],
    teaches: Mapping[str, str],
    figures: Mapping[str, Sequence[str]],
    campaign: Campaign,
    troubles: Table,
) -> str:
    """Returns results/index.html, whose links are relative to the folder of results.

    Args:
        families: the tables of each family, in the order in which they are introduced.
        teaches: what each family teaches; "" if nobody says it.
        figures: the names of the figures of each family.
        troubles: what is not ok, without rows if nothing is.
    """
    lines: list[tuple[object, ...]] = []
    for tables in families:
        name, own = tables.family, as_rows(tables.variants)
        ok = sum(row["status"] == "ok" for row in own)
        about = teaches.get(name) or str(own[0]["title"])
        lines.append((name, about, f"{ok} of {len(own)}", *_with_figure(tables, figures.get(name, ()))))
    subject = "what it teaches" if any(teaches.values()) else "task"
    titles = ("family", subject, "variants ok", *_FASTEST)
    links = [f"worklog/{tables.family}.html" for tables in families]
    page_tables: list[Section] = [
        ("", links, Grid(titles, tuple(lines), frozenset({5, 6}))),
        *([("Not ok", (), troubles)] if troubles.rows else []),
        ("More", *_more()),
    ]
    return _render(Look(Markup(f"<style>{css()}</style>"), Markup("")), families, campaign, page_tables)  # noqa: S704


_FASTEST = ("case", "fastest besides the baseline", "speed", "of the baseline", "baseline")


def _more() -> tuple[list[str], Table]:
    files = {
        "summary.md": ("all variants", "status, time, speed and share of the baseline of each variant"),
        "mechanisms/predicted_savings.png": (
            "mechanisms",
            "what each step was predicted to save, against measured",
        ),
        "track/runs.html": ("MLflow", "links to the runs of all variants, and how to start MLflow's pages"),
        "tables/columns.csv": ("tables", "the meaning of every column; the tables are beside it"),
    }
    return list(files), Table(("also here", ""), tuple(files.values()))


def site_index(
    families: Sequence[tuple[str, int, FigureTables]],
    more: Section | None,
    campaign: Campaign,
    look: Look,
) -> str:
    """Returns the index of a site, from title, number of variants and tables of each family."""
    lines = tuple((tables.family, title, *fastest(tables), str(count)) for title, count, tables in families)
    titles = ("family", "task", *_FASTEST, "variants, with the baseline")
    links = [f"{tables.family}/index.html" for _, _, tables in families]
    page_tables: list[Section] = [
        ("", links, Grid(titles, lines, frozenset({4, 5, 7}))),
        *([more] if more else []),
    ]
    return _render(look, [tables for _, _, tables in families], campaign, page_tables)


def _render(
    look: Look, families: Sequence[FigureTables], campaign: Campaign, page_tables: Sequence[Section]
) -> str:
    timed = regimes.where_timed(row for tables in families for row in as_rows(tables.measurements))
    recorded = any(tables.variants["origin"].eq("recorded").any() for tables in families)
    about = [campaign.gpu_name, campaign.started[:10], "recorded" if recorded else ""]
    facts = {"Campaign": campaign.campaign, "driver": campaign.driver, "CUDA": campaign.cuda}
    stated = [f"{word} {text}" for word, text in {**facts, "clocks": campaign.clocks}.items() if text]
    lead = f"{', '.join(stated)}. A family is one task; its page leads from the first kernel to the fastest. "
    lead += f"Speeds are medians {timed} at the case named."
    title = ", ".join(filter(None, about))
    return render("site.html.j2", look, title=title, lead=lead, trail=(), section=None, tables=page_tables)


def fastest(tables: FigureTables) -> tuple[object, ...]:
    """Returns the headline case, the fastest variant besides the baseline, its speed and share, and the baseline."""
    place = next((place for place in rows(tables.places, Place) if place.fastest == "best"), None)
    if place is None:
        return tables.case, "none", "", "", ""
    cells = Cells(Place.TABLE, place)
    baseline = (
        next((row for row in as_rows(tables.variants) if row["is_baseline"]), {}) if cells.share_pct else {}
    )
    note = f" ({text(baseline, 'note')})" if text(baseline, "note") else ""
    return (
        tables.case,
        place.variant,
        cells.speed,
        cells.share_pct or "",
        text(baseline, "variant") + note,
    )


def _with_figure(tables: FigureTables, drawn: Sequence[str]) -> tuple[object, ...]:
    """Returns `fastest`, whose speed is a link to the figure of the ladder if that is drawn."""
    case, name, speed, *others = fastest(tables)
    if "ladder" in drawn and speed:
        address = f"figures/{tables.family}/ladder.png"
        speed = Markup('<a href="{}">{}</a>').format(address, escape(speed))
    return case, name, speed, *others
