"""Writes the worklog page of a family as one HTML file and as Markdown, and its tables and figures as LaTeX."""

from collections.abc import Sequence
from pathlib import Path

from warplog import worklog
from warplog.core import paths
from warplog.core.files import write_text
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.tables import view


def main(
    plan: Plan, family: str, tables: Path, figures: Sequence[Path], library: Path, output: Path, latex: Path
) -> None:
    kept = {v.name: plan.build_record(v).with_name("kernel.sass") for v in plan.chosen[family]}
    page = worklog.gather(
        plan.families[family],
        view.load(tables, family),
        door.read(Path(plan.campaign()), Campaign),
        figures,
        paths.WORKFLOW / "report",
        kept,
    )
    write_text(output.with_suffix(".html"), worklog.html(page, library.read_text(encoding="utf-8")))
    write_text(output.with_suffix(".md"), worklog.markdown(page, output.parent))
    for name, text in worklog.latex(page).items():
        write_text(latex / f"{name}.tex", text)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Plan.made_of(snakemake.params.plan, [snakemake.wildcards.family]),
            snakemake.wildcards.family,
            Path(snakemake.input.tables[0]).parent,
            sorted(Path(snakemake.input.figures).glob("*.png")),
            Path(snakemake.input.library),
            Path(snakemake.output.html),
            Path(snakemake.output.latex),
        )
