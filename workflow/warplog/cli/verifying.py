"""The command `warplog verify`: are the records of a campaign consistent, and the files of a recorded one unchanged?"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from warplog.core.errors import WarplogError

_ABOUT = """\
Verifies a results folder or a recorded campaign:
- records are well-formed, in their place, and agree with each other: no time without the passed check of the same
  library, and every statistic is that of the samples;
- files of a recorded campaign are those in its manifest.json, which it must have.
Then it says when, of which commit and on how many boards each stage was measured.
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
    from warplog.records import door
    from warplog.records.verification import campaign_folder, manifest

    path = folder / manifest.NAME
    # An archive that was changed is one problem, not one for each of its records.
    problems = manifest.problems(folder) if path.is_file() else []
    records = 0 if problems else campaign_folder.count(folder)
    if not problems and not records:
        raise WarplogError(
            f"{folder}: holds no campaign; name the results of a run on a GPU, or a recorded campaign"
        )
    problems = problems or campaign_folder.record_problems(folder)
    if options.write_manifest and not problems:
        _write_manifest(folder)
    problems = problems or manifest.problems(folder)
    for problem in problems:
        note(f"error: {problem}")
    if problems:
        note(f"{folder}: {len(problems)} problem{'s' if len(problems) > 1 else ''}")
        return 1
    files = len(door.read(path, manifest.Manifest).files) if path.is_file() else 0
    unchanged = f", {files} files as in {path.name}" if files else ""
    print("\n".join((f"{folder}: {records} consistent records{unchanged}", *_measured(folder))))
    return 0


def _measured(folder: Path) -> Iterator[str]:
    """Yields a line with the commits of each campaign, and one per stage: days, commits and boards of its records."""
    from warplog.records import door
    from warplog.records.campaign import Campaign
    from warplog.records.family_file import FamilyRecord
    from warplog.records.stages import MEASURING, START

    for path in START.files(folder):
        campaign = door.read(path, Campaign)
        yield f"{campaign.campaign}: {campaign.gpu_name}, commit {campaign.commits}"
    for stage in MEASURING:
        entries = [
            record.provenance
            for path in stage.files(folder)
            for record in FamilyRecord.read(path, stage.record).variants.values()
        ]
        days = sorted({entry.finished[:10] for entry in entries} - {""})
        commits = sorted({entry.commit[:7] for entry in entries} - {""})
        boards = {entry.gpu_uuid for entry in entries} - {""}
        if entries:
            many = "" if len(boards) == 1 else "s"
            yield f"  {stage.word:9} {' '.join(days)}  {' '.join(commits)}  {len(boards)} board{many}"


def _write_manifest(folder: Path) -> None:
    from warplog.records import door
    from warplog.records.campaign import Campaign
    from warplog.records.verification import manifest

    campaigns = list((folder / "campaign").glob("*.json"))
    if (folder / manifest.NAME).is_file() or len(campaigns) != 1:
        raise WarplogError(
            f"{folder}: has a manifest already, or not exactly one campaign; nothing was written"
        )
    about = door.read(campaigns[0], Campaign)
    manifest.write(folder, about.campaign, about.commit)
    print(f"{folder / manifest.NAME}: from now on, its files as they are count as those that were measured")
