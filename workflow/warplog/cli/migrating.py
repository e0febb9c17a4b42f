"""The command `warplog migrate`: carries a folder of the release before to the present format."""

import argparse
import contextlib
from pathlib import Path

_ABOUT = """\
Carries a results folder or a recorded campaign of the release before to the present format. The files of a recorded
campaign are compared with its manifest first, and its records packed. The folder changes only once all of it was read
and written anew; a folder in the present format stays as it is. In a results folder, measurements whose job, build and
tools are as they were get the key by which this release knows that, so that the next run does not repeat them.
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", campaign: str) -> None:
    """Adds the command to the parser of `warplog`; `campaign` is the text of help that it shares with others."""
    migrate = commands.add_parser(
        "migrate",
        help="carry a results folder or recorded campaign of the release before to the present format",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    migrate.add_argument("campaign", metavar="FOLDER", help=campaign)
    migrate.set_defaults(command="migrate")


def run(folder: Path) -> int:
    """Carries the folder over and prints a line per stage.

    Raises:
        WarplogError: See `migration.folder.migrate`, or a run is working in the results folder.
    """
    from warplog.core.locks import hold_folder
    from warplog.migration.folder import is_recorded, migrate

    recorded = is_recorded(folder)
    if not recorded:
        hold_folder(str(folder))
    migrate(folder, print)
    if not recorded:
        from warplog.plan.rekey import rekey

        with contextlib.chdir(folder.absolute().parent):
            rekey(print)
    return 0
