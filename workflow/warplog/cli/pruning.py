"""The subcommand `warplog prune`: deletes runs from a tracking store, which logging never does."""

import argparse
from pathlib import Path

from warplog.cli.checkup.host import configured_store
from warplog.core.errors import WarplogError

_ABOUT = """\
Lists the runs of warplog in a tracking store that are superseded by newer ones of the same campaign, GPU and variant,
or whose writing was interrupted; with --yes, deletes them. Other runs are never touched.
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the subcommand to the parser."""
    prune = commands.add_parser("prune", help="delete superseded runs from the MLflow store")
    prune.description = _ABOUT
    prune.add_argument(
        "--uri", default="", help="default: MLFLOW_TRACKING_URI, else the store of the project"
    )
    prune.add_argument("--campaign", default="", help="only runs of the campaign with this name or id")
    prune.add_argument("--family", default="", help="only runs of this family")
    prune.add_argument("--origin", default="", choices=("live", "recorded"), help="only runs of this origin")
    prune.add_argument(
        "--current", action="store_true", help="current runs too; requires --campaign, --family or --origin"
    )
    act = prune.add_mutually_exclusive_group()
    act.add_argument("--dry-run", action="store_true", help="only list the runs (the default)")
    act.add_argument("--yes", action="store_true", help="delete the listed runs")
    prune.set_defaults(command="prune")


def run(options: argparse.Namespace, project: Path) -> int:
    """Lists or deletes the chosen runs.

    Raises:
        WarplogError: --current without a filter, or the store does not exist or does not answer.
    """
    from warplog.track.address import sqlite_file, tracking_uri
    from warplog.track.prune import Choice, prune

    if options.current and not (options.campaign or options.family or options.origin):
        raise WarplogError("--current: would delete every run; name --campaign, --family or --origin as well")
    uri = options.uri or tracking_uri(configured_store(project))
    if (file := sqlite_file(uri)) is not None and not options.uri:
        uri = f"sqlite:///{project / file}"
    choice = Choice(options.campaign, options.family, options.origin, options.current)
    prune(uri, choice, options.yes, print)
    return 0
