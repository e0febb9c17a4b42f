"""Compares two campaigns, case by case: verdicts as JSON, CSV and Markdown, ratios as a figure."""

from pathlib import Path
from typing import Any

from warplog.core.records import write_text
from warplog.judge import comparison
from warplog.judge import comparison as comparison_text
from warplog.judge.figures import comparison as comparison_figure
from warplog.judge.sources import Sources, parent_of
from warplog.plan.plan import make_plan
from warplog.plan.script import job
from warplog.track.connection import tracking_uri


def main(config: dict[str, Any], names: list[str], uri: str, outputs: dict[str, Path]) -> None:
    plan = make_plan(config)
    sources = Sources(Path(), uri, plan.gpu)
    found = comparison.run(names, sources, above=parent_of(plan.families))
    write_text(outputs["json"], comparison_text.as_json(found))
    write_text(outputs["csv"], comparison_text.as_csv(found))
    write_text(outputs["markdown"], comparison_text.as_markdown(found))
    comparison_figure.save(found, outputs["png"], outputs["svg"])


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            snakemake.config,
            list(snakemake.params.names),
            tracking_uri(snakemake.params.uri),
            {name: Path(path) for name, path in snakemake.output.items()},
        )
