"""The subcommand `warplog remote`: runs the campaign on a machine with a GPU that is reached by ssh."""

import argparse
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from warplog.core import paths
from warplog.core.errors import WarplogError, say

_ABOUT = """\
Runs `snakemake` with the given options on a machine with a GPU, and makes tables, figures and pages here.

The sources are copied by rsync and set up with uv. The run survives a broken link: this command attaches again, or goes
on if it is repeated. Records are fetched into results/recorded/<name> while they are finished, and the campaign is then
read from there: snakemake --config mode=recorded recorded=<name>.
"""
_HELP = (
    "example: warplog remote me@gpu-box --path scratch/warplog -- --cores 8 --config gpu=all families=sgemm"
)
_STATE = "results/remote"
_PATH = 'PATH="$HOME/.local/bin:$PATH"'  # where pip puts uv
_UV = f"command -v uv >/dev/null || python3 -m pip install -q --user uv; {_PATH} uv sync -q"
_RUN = f"env {_PATH} uv run snakemake"
# What is not copied there: what is made there, and what belongs to this machine.
_LEFT = ("/.git", "/.venv", "/.snakemake", "__pycache__", "/.*_cache", "/results/recorded/remote-*")
_KEPT = ("--include=/results/recorded/***", "--exclude=/results/*")
_FETCHED = ("campaign", "build", "check", "time", "profile", "extract", "sanitize", "tune", "aa")
_NOT_FETCHED = (".*", "kernel.so", "kernel.sass", "*.ncu-rep", "*.nsys.sqlite", "*.complete")
_SELECTION = ("families=", "variants=", "cases=", "kernel_folders=")  # what the pages made here cover, too
_LOST = 255  # exit status of ssh if the link failed
_LINK_OF_RSYNC, _VANISHED = (10, 12, 20, 30, 35, 255), 24  # rsync(1), EXIT VALUES
_POLL_S, _PATIENCE_S = 5.0, 1800.0


T = TypeVar("T")


class LinkError(WarplogError):
    """The link to the other machine is broken."""


@dataclass(frozen=True)
class Link:
    """How the machine is reached: host, folder there, and the ssh command."""

    host: str
    path: str
    ssh: str

    def run(self, script: str) -> "subprocess.CompletedProcess[bytes]":
        """Runs a shell script in the folder there; exit status 255 if the link fails."""
        command = f"mkdir -p {shlex.quote(self.path)} && cd {shlex.quote(self.path)} && {{ {script}\n}}"
        arguments = [*shlex.split(self.ssh), self.host, command]
        return subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def send(self, folder: Path) -> None:
        """Copies the sources; files that are no longer here are removed there, results are not.

        Raises:
            WarplogError: rsync is missing or fails, or the link does.
        """
        self._rsync(
            [f"--exclude={pattern}" for pattern in ("*.pyc", *_LEFT)] + [*_KEPT],
            f"{folder}/",
            self._place("."),
        )

    def fetch(self, folder: Path) -> None:
        """Copies the finished records of all stages to `folder`.

        Raises:
            WarplogError: rsync is missing or fails, or the link does.
        """
        folder.mkdir(parents=True, exist_ok=True)
        chosen = [f"--exclude={pattern}" for pattern in _NOT_FETCHED]
        chosen += [f"--include=/{stage}/***" for stage in _FETCHED] + ["--exclude=/*"]
        self._rsync(["--prune-empty-dirs", *chosen], self._place("results/"), f"{folder}/")

    def _place(self, name: str) -> str:
        return f"{self.host}:{self.path}/{name}"

    def _rsync(self, options: Sequence[str], source: str, target: str) -> None:
        command = ["rsync", "-az", "--delete", "-e", self.ssh, *options, source, target]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise WarplogError("rsync: not found; install it here and on the other machine") from None
        why = " ".join(done.stderr.split())[-300:]
        if done.returncode in _LINK_OF_RSYNC:
            raise LinkError(f"{self.host}: no link ({why or 'rsync ended'})")
        if done.returncode not in (0, _VANISHED):
            raise WarplogError(f"rsync {source}: exit status {done.returncode}: {why}")


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the subcommand to the parser."""
    remote = commands.add_parser("remote", help="run the campaign on a machine reached by ssh", epilog=_HELP)
    remote.description = _ABOUT
    remote.add_argument("host", metavar="USER@HOST", help="as ssh knows it")
    remote.add_argument(
        "--path", default="warplog", help="folder there (default: warplog in the home folder)"
    )
    remote.add_argument("--name", default="", help="name of the campaign here (default: the host's name)")
    remote.add_argument(
        "--ssh", default="ssh -o ServerAliveInterval=15", help="ssh command, with its options"
    )
    remote.add_argument(
        "--setup", default=_UV, help="command that sets up the folder there (default: uv sync)"
    )
    remote.add_argument("--run", default=_RUN, help="command of snakemake there (default: uv run snakemake)")
    remote.add_argument("--no-pages", action="store_true", help="only fetch the records")
    remote.usage = "warplog remote USER@HOST [OPTIONS] -- [OPTIONS OF SNAKEMAKE]"
    remote.set_defaults(command="remote", options=[])


def parted(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns warplog's own arguments, and those after --, which argparse would take for its own."""
    place = list(given).index("--") if "--" in given else len(given)
    return list(given[:place]), list(given[place + 1 :])


def run(options: argparse.Namespace, project: Path) -> int:
    """Runs the campaign there and makes tables, figures and pages here; returns Snakemake's exit status.

    Raises:
        WarplogError: another run with other options is under way there, the setup failed, or the link stays broken.
    """
    from warplog.measure import provenance

    link = Link(options.host, options.path, options.ssh)
    name = options.name or _name_of(options.host)
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", name):
        raise WarplogError(f"--name {name!r}: lower-case letters, digits and hyphens")
    target = project / paths.recorded_root(name)
    command = f"{options.run} {shlex.join(with_commit(options.options, provenance.commit_of(project)))}"
    patiently(lambda: start(link, project, options.setup, command))
    status = follow(link, target)
    patiently(lambda: link.fetch(target))
    say(f"  remote  the records are in {target}")
    if options.no_pages or not (target / "campaign").is_dir():
        return status
    chosen = [word for word in options.options if word.startswith(_SELECTION)]
    local = [
        sys.executable,
        "-m",
        "snakemake",
        "--cores",
        "1",
        "--config",
        "mode=recorded",
        f"recorded={name}",
        *chosen,
    ]
    return subprocess.run(local, cwd=project, check=False).returncode or status


def with_commit(options: Sequence[str], commit: str) -> list[str]:
    """Returns Snakemake's options with the commit of the sources, which are no Git checkout on the other machine."""
    named = re.match(r"[0-9a-f]{7,40}", commit)
    if not named or any(word.startswith("commit=") for word in options):
        return list(options)
    words = list(options) if "--config" in options else [*options, "--config"]
    place = words.index("--config") + 1
    return [*words[:place], f"commit={named[0]}", *words[place:]]


def start(link: Link, project: Path, setup: str, command: str) -> None:
    """Copies the sources and starts the run in a session of its own, unless one with this command is under way.

    Raises:
        WarplogError: the link or the setup failed, or a run with another command is under way.
    """
    running = link.run(f"kill -0 $(cat {_STATE}/pid) 2>/dev/null && cat {_STATE}/command; true")
    _check(link, running)
    there = running.stdout.decode(errors="replace")
    if there and there != command:
        raise WarplogError(f"{link.host}:{link.path}: another run is under way there: {there}")
    if there:
        say(f"  remote  {link.host}: attached to the run that is under way")
        return
    link.send(project)
    say(f"  remote  {link.host}: sources copied; setting up")
    _check(link, link.run(setup), "the setup failed")
    whole = f"{command} >{_STATE}/log 2>&1; echo $? >{_STATE}/status"
    script = (
        f"mkdir -p {_STATE} && rm -f {_STATE}/status && : >{_STATE}/log"
        f" && printf %s {shlex.quote(command)} >{_STATE}/command"
        f" && {{ setsid sh -c {shlex.quote(whole)} </dev/null >/dev/null 2>&1 & echo $! >{_STATE}/pid; }}"
    )
    _check(link, link.run(script), "the run could not be started")


def follow(link: Link, target: Path) -> int:
    """Prints the run's output and fetches records until it ends; returns its exit status.

    Raises:
        WarplogError: the link stays broken, or the run ended without a status, as after a reboot.
    """
    shown = 0
    while True:
        text, state = patiently(partial(_look, link, shown))
        shown += len(text)
        print(text.decode(errors="replace"), end="", flush=True)
        if state == "lost":
            raise WarplogError(
                f"{link.host}: the run ended without a status, as after a reboot; run this again"
            )
        if state != "running":
            return int(state)
        if text:
            patiently(lambda: link.fetch(target))
        time.sleep(_POLL_S)


def patiently(act: Callable[[], T], patience_s: float = _PATIENCE_S) -> T:
    """Returns what `act` returns; tries again while the link is broken.

    Raises:
        WarplogError: it fails for another reason, or the link is broken for longer than `patience_s` seconds.
    """
    since = time.monotonic()
    told = False
    while True:
        try:
            return act()
        except LinkError as error:
            if time.monotonic() - since > patience_s:
                raise WarplogError(f"{error}; run the same command again to go on") from None
            if not told:
                say(f"  remote  {error}; trying again")
            told = True
            time.sleep(_POLL_S)


def _look(link: Link, seen: int) -> tuple[bytes, str]:
    """Returns the output after `seen` bytes, and the run's state: its exit status, 'running' or 'lost'."""
    state = (
        f"cat {_STATE}/status 2>/dev/null || {{ kill -0 $(cat {_STATE}/pid) 2>/dev/null && echo running; }}"
    )
    # The state is read first: output that comes later is shown the next time.
    script = f"state=$({state}); tail -c +{seen + 1} {_STATE}/log; printf '\\0%s' \"${{state:-lost}}\""
    done = link.run(script)
    _check(link, done)
    text, _, found = done.stdout.rpartition(b"\0")
    return text, found.decode().strip()


def _check(
    link: Link, done: "subprocess.CompletedProcess[bytes]", failed: str = "the command failed"
) -> None:
    why = " ".join((done.stderr or done.stdout).decode(errors="replace").split())[-300:]
    if done.returncode == _LOST:
        raise LinkError(f"{link.host}: no link ({why or 'ssh ended'})")
    if done.returncode:
        raise WarplogError(f"{link.host}: {failed} (exit status {done.returncode}): {why}")


def _name_of(host: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", host.rpartition("@")[2].lower()).strip("-")
    return f"remote-{name}"
