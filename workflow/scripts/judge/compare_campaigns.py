"""Compares two campaigns, case by case: verdicts as JSON, CSV and Markdown, ratios as a figure."""

from pathlib import Path

from warplog.core.files import write_text
from warplog.core.paths import RESULTS
from warplog.judge import comparison
from warplog.judge.figures import comparison as figure
from warplog.judge.sources import Sources, parent_of
from warplog.plan.plan import Plan
from warplog.plan.script import job
from warplog.track.address import tracking_uri


def main(plan: Plan, names: list[str], uri: str, outputs: dict[str, Path]) -> None:
    sources = Sources(plan.project, uri, plan.gpu, RESULTS)
    found = comparison.run(names, sources, above=parent_of(plan.families))
    write_text(outputs["json"], comparison.as_json(found))
    write_text(outputs["csv"], comparison.as_csv(found))
    write_text(outputs["markdown"], comparison.as_markdown(found))
    figure.save(found, outputs["png"], outputs["svg"])


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            Plan.made_of(snakemake.params.plan),
            list(snakemake.params.names),
            tracking_uri(snakemake.params.uri),
            {name: Path(path) for name, path in snakemake.output.items()},
        )
