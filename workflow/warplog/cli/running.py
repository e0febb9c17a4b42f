"""The subcommand `warplog run`: the campaign of a folder of kernels, with the workflow of the installed package."""

import argparse
import importlib.util
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from warplog.cli.checkup import packages
from warplog.core import paths
from warplog.core.errors import WarplogError, say

OWN = ("-h", "--help", "--cores", "--strict")  # other options are Snakemake's
_ABOUT = """\
Runs the campaign of a folder of kernels (FOLDER/warplog/, if there is one) with the workflow of this package; the
results are in its folder results/. Without a GPU and without a recorded campaign, the kernels are compiled only.

Options that are not listed here, and everything after `--`, are Snakemake's.
"""
_EXAMPLES = """\
examples:
  warplog run                                    everything
  warplog run --cores 8                          compile up to 8 kernels at the same time
  warplog run --config variants=naive,mine       two variants only
  warplog run -n                                 list what would run, and run nothing
  warplog run -- time                            up to one stage: build, check, time, profile, extract, tables, ...
"""
# Ctrl-C while Snakemake is imported is one line, too.
_SNAKEMAKE = """
from warplog.core.errors import quiet_interrupts
quiet_interrupts()
from snakemake.cli import main
main()
"""
_DOTTED = re.compile(r"(\w+)\.(\w+)=(.*)")  # time.processes=5


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the subcommand to the parser."""
    run = commands.add_parser(
        "run",
        help="run the campaign of a folder of kernels",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="folder of the project, or one in it (default: this folder)",
    )
    run.add_argument("--cores", default="1", metavar="N", help="jobs at the same time, or all (default: 1)")
    run.add_argument("--strict", action="store_true", help="exit with status 1 if a variant is not ok")
    run.usage = "warplog run [FOLDER] [--cores N] [--strict] [OPTIONS OF SNAKEMAKE] [-- TARGETS]"
    run.set_defaults(command="run", options=[])


def parted(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the words for warplog, and those for Snakemake: after `--`, or from the first option that is not ours."""
    other = (i for i, word in enumerate(given) if word[:1] == "-" and word.partition("=")[0] not in OWN)
    place = next(other, len(given))
    return list(given[:place]), list(given[place + (given[place:][:1] == ["--"]) :])


def run(options: argparse.Namespace) -> int:
    """Runs Snakemake in the folder of the campaign; returns its exit status.

    Raises:
        WarplogError: Snakemake is not installed, there is no project with a family, or a key of --config has a dot.
    """
    if importlib.util.find_spec("snakemake") is None:
        raise WarplogError(packages.missing("snakemake"))
    for word in options.options:
        if dotted := _DOTTED.fullmatch(word):
            remedy = "write '{}={{{}: {}}}'".format(*dotted.groups())
            raise WarplogError(f"--config {word}: Snakemake reads no key with a dot; {remedy}")
    folder = campaign_folder(options.folder)
    given, why = list(options.options), _only_build(folder, options.options)
    if why:
        given = _configured(given, _for_building(given, folder))
        targets = given.index("--") + 1 if "--" in given else 0  # Snakemake takes them in one place only
        given = [*given[:targets], "build", *given[targets:]]
    if options.strict:
        given = _configured(given, ["strict=true"])
    command = [sys.executable, "-c", _SNAKEMAKE, "-s", paths.WORKFLOW / "Snakefile", "-d", folder]
    command += ["--workflow-profile", paths.PROFILE, "--cores", options.cores, *given]
    status = _attended(list(map(str, command)))
    if why and not status:
        say(f"{why}: nothing was checked or timed; run the same command on a machine with a GPU")
    return status


def _attended(command: Sequence[str]) -> int:
    """Runs a program, which Ctrl-C reaches as well, passes SIGTERM and SIGHUP on to it, and returns its exit status."""
    with subprocess.Popen(command) as child:

        def attend(number: int, _frame: object) -> None:
            if number != signal.SIGINT:
                child.send_signal(number)

        before = {n: signal.signal(n, attend) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            status = child.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return status if status >= 0 else 128 - status


def campaign_folder(folder: Path) -> Path:
    """Returns the folder of the project that is found from `folder`.

    Raises:
        WarplogError: `folder` does not exist, or the project has no family.
    """
    if not folder.is_dir():
        target = f"if it is a target, write `warplog run -- {folder}`"
        raise WarplogError(f"{folder}: no such folder; {target}")
    place = paths.nearest_project(folder)
    from warplog.records.config import configured

    if paths.has_family(place) or configured(place).kernel_folders:
        return place
    wanted = folder / paths.FOLDER / "kernels"
    raise WarplogError(f"{wanted}: no family (<family>/family.yaml); `warplog init {folder}` writes one")


def _only_build(folder: Path, given: Sequence[str]) -> str:
    """Returns why nothing can be measured and no recorded campaign be used here; '' if either can.

    An own `mode=` in the options of Snakemake decides as well.
    """
    from warplog.machine import device
    from warplog.records.config import configured

    settings = configured(folder)
    recorded = folder / paths.recorded_root(settings.recorded) / "campaign"
    decided = settings.mode != "auto" or any(word.startswith(("mode=", "recorded=")) for word in given)
    if decided or recorded.is_dir() or device.boards():
        return ""
    return f"no GPU here ({device.why_not()})"


def _for_building(given: Sequence[str], folder: Path) -> list[str]:
    """Returns the settings for compiling alone, for the GPU in the configuration or a known one."""
    from warplog.records.config import Config, configured

    named = configured(folder).gpu != "auto" or any(w.startswith("gpu=") for w in given)
    return ["mode=live", *([] if named else [f"gpu={Config().recorded}"])]


def _configured(given: Sequence[str], settings: Sequence[str]) -> list[str]:
    """Returns the options of Snakemake with settings added to those in its option --config, which may occur once."""
    words = list(given)
    end = words.index("--") if "--" in words else len(words)  # targets follow
    place = next((i + 1 for i, word in enumerate(words[:end]) if word in ("--config", "-C")), None)
    added = ["--config", *settings] if place is None else list(settings)
    return [*words[: place or end], *added, *words[place or end :]]
