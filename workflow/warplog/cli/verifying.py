"""The command `warplog verify`: are the files of a campaign as they were written, and its records consistent?"""

import argparse
from collections.abc import Callable
from pathlib import Path

from warplog.core.errors import WarplogError

_ABOUT = """\
Verifies a results folder or a recorded campaign:
- records are well-formed, in their place, and agree with each other: no time without the passed check of the same
  library, and every statistic is that of the samples;
- files of a recorded campaign are those in its manifest.json, which it must have;
- tables, figures and pages of a live campaign are as they were written, and made from what is there.
Exit status 1: at least one problem was found; each is one line.
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the command to the parser of `warplog`."""
    verify = commands.add_parser(
        "verify",
        help="check that the files of a campaign are complete, unchanged and consistent",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verify.add_argument("folder", type=Path, metavar="DIR", help="results, or results/recorded/NAME")
    verify.add_argument(
        "--write-manifest",
        action="store_true",
        help="write the manifest of a campaign that has none, if its records are consistent: from then on, its files as"
        " they are now count as those that were measured",
    )
    verify.set_defaults(command="verify")


def run(options: argparse.Namespace, note: Callable[[str], None]) -> int:
    """Verifies the folder and returns the exit status; `note` prints a problem to standard error.

    Raises:
        WarplogError: The folder holds no campaign, or its manifest must not be replaced.
    """
    from warplog.core.verification import campaign, digests

    folder: Path = options.folder
    files = sorted((folder / "campaign").glob("*.json"))
    if not files and not (folder / digests.FOLDER).is_dir():
        raise WarplogError(f"{folder}: holds no campaign; name results or a folder in results/recorded/")
    problems = campaign.record_problems(folder)
    if options.write_manifest and not problems:
        _write_manifest(folder, files)
    problems += [*digests.manifest_problems(folder), *digests.derived_problems(folder)]
    for problem in problems:
        note(f"error: {problem}")
    if problems:
        note(f"{folder}: {len(problems)} problem{'s' if len(problems) > 1 else ''}")
        return 1
    print(f"{folder}: {', '.join(_confirmed(folder))}")
    return 0


def _confirmed(folder: Path) -> list[str]:
    from warplog.core.records import read_json
    from warplog.core.verification import campaign, digests

    manifest = folder / digests.MANIFEST
    known = len(read_json(manifest, "manifest")["files"]) if manifest.is_file() else 0
    counts = {
        "consistent records": campaign.count(folder),
        f"files as in {manifest.name}": known,
        "derived files as they were written": digests.derived_count(folder),
    }
    return [f"{count} {what}" for what, count in counts.items() if count] or ["nothing to verify"]


def _write_manifest(folder: Path, campaigns: list[Path]) -> None:
    from warplog.core.records import read_json
    from warplog.core.verification import digests

    if (folder / digests.MANIFEST).is_file() or len(campaigns) != 1:
        raise WarplogError(
            f"{folder}: has a manifest already, or not exactly one campaign; nothing was written"
        )
    digests.write_manifest(folder, read_json(campaigns[0], "record"))
    print(
        f"{folder / digests.MANIFEST}: from now on, its files as they are count as those that were measured"
    )
