"""Writes the worklog of a family: one HTML file, the same as Markdown, and its tables in LaTeX."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warplog import worklog
from warplog.core.records import read_json, write_text
from warplog.plan.plan import make_plan
from warplog.plan.script import job
from warplog.tables import view


def main(config: dict[str, Any], family: str, tables: Path, figures: Sequence[Path], output: Path) -> None:
    plan = make_plan(config)
    page = worklog.gather(
        plan.families[family],
        view.load(tables, family, plan.gpu),
        read_json(Path(plan.campaign()), "record"),
        figures,
        Path("workflow/report"),
    )
    write_text(output.with_suffix(".html"), worklog.html(page))
    write_text(output.with_suffix(".md"), worklog.markdown(page, output.parent))
    write_text(output.with_suffix(".tex"), worklog.latex(page))


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            snakemake.config,
            snakemake.wildcards.family,
            Path(snakemake.input.tables[0]).parent,
            [Path(path) for path in snakemake.input.figures],
            Path(snakemake.output.html),
        )
