"""Writes the result of the run: typed rows, a table of all variants, and the page to open."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from warplog.catalog.order import introductions
from warplog.core.errors import WarplogError
from warplog.core.files import write_text
from warplog.judge.summary import shown
from warplog.judge.summary.gather import gather
from warplog.judge.summary.rows import Summary
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.records.fields import Origin
from warplog.tables import view
from warplog.worklog.site import index


def main(
    plan: Plan, tables: Path, order: Sequence[Path], figures: Mapping[str, Sequence[str]], rows: Path
) -> None:
    teaches = introductions(order, list(plan.chosen))
    read = view.read_all(tables)
    families = [view.of_family(read, tables, name) for name in teaches]
    campaign = door.read(Path(plan.campaign()), Campaign)
    origin: Origin = "live" if plan.live else "recorded"
    summary = gather(families, plan.known().troubles, former(rows), campaign, origin)
    text = index.page(families, teaches, figures, campaign, shown.trouble_table(summary))
    write_text(rows.with_name("index.html"), text)
    write_text(rows.with_suffix(".md"), shown.markdown(summary))
    door.write(rows, summary)


def former(rows: Path) -> Summary | None:
    """Returns the summary of the previous evaluation; None without one, or of another version of warplog."""
    try:
        return door.read(rows, Summary) if rows.is_file() else None
    except WarplogError:
        return None


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Plan.of_chosen(snakemake.params.plan),
            Path(snakemake.input.tables[0]).parent,
            [Path(path) for path in snakemake.input.order],
            snakemake.params.figures,
            Path(snakemake.output.rows),
        )
