"""The command `warplog verify`: are the records of a campaign consistent, and the files of a recorded one unchanged?"""

import argparse
from collections.abc import Callable
from pathlib import Path

from warplog.core.errors import WarplogError

_ABOUT = """\
Verifies a results folder or a recorded campaign:
- records are well-formed, in their place, and agree with each other: no time without the passed check of the same
  library, and every statistic is that of the samples;
- files of a recorded campaign are those in its manifest.json, which it must have.
Exit status 1: at least one problem was found; each is one line.
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", campaign: str) -> None:
    """Adds the command to the parser of `warplog`; `campaign` is the text of help that it shares with others."""
    verify = commands.add_parser(
        "verify",
        help="check that the records of a campaign are consistent, and the files of a recorded one unchanged",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verify.add_argument("campaign", nargs="?", metavar="CAMPAIGN", help=campaign)
    verify.add_argument(
        "--write-manifest",
        action="store_true",
        help="write the manifest of a campaign that has none, if its records are consistent: from then on, its files as"
        " they are now count as those that were measured",
    )
    verify.set_defaults(command="verify")


def run(options: argparse.Namespace, folder: Path, note: Callable[[str], None]) -> int:
    """Verifies the folder and returns the exit status; `note` prints a problem to standard error.

    Raises:
        WarplogError: The folder holds no campaign, or its manifest must not be replaced.
    """
    from warplog.core.records import read_json
    from warplog.core.verification import campaign
    from warplog.records import manifest

    records = campaign.count(folder)
    if not records:
        raise WarplogError(
            f"{folder}: holds no campaign; name the results of a run on a GPU, or a recorded campaign"
        )
    problems = campaign.record_problems(folder)
    if options.write_manifest and not problems:
        _write_manifest(folder)
    problems += manifest.problems(folder)
    for problem in problems:
        note(f"error: {problem}")
    if problems:
        note(f"{folder}: {len(problems)} problem{'s' if len(problems) > 1 else ''}")
        return 1
    path = folder / manifest.NAME
    unchanged = f", {len(read_json(path)['files'])} files as in {path.name}" if path.is_file() else ""
    print(f"{folder}: {records} consistent records{unchanged}")
    return 0


def _write_manifest(folder: Path) -> None:
    from warplog.core.records import read_json
    from warplog.records import manifest

    campaigns = list((folder / "campaign").glob("*.json"))
    if (folder / manifest.NAME).is_file() or len(campaigns) != 1:
        raise WarplogError(
            f"{folder}: has a manifest already, or not exactly one campaign; nothing was written"
        )
    manifest.write(folder, read_json(campaigns[0], "record"))
    print(f"{folder / manifest.NAME}: from now on, its files as they are count as those that were measured")
