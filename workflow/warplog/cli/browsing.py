"""The subcommand `warplog ui`: MLflow's pages of the project's runs, on this machine only."""

import argparse
import importlib.util
import math
import os
import socket
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from warplog.cli.checkup import packages
from warplog.cli.checkup.host import store
from warplog.core import paths, process
from warplog.core.errors import WarplogError, say
from warplog.core.text import printable

_ABOUT = """\
Starts MLflow's pages for the project's runs, on this machine only and without telemetry, and prints the address of a
page of links: to the table of each family and to each run. Opens it if there is a browser. Ctrl-C ends it.
With an MLflow server (MLFLOW_TRACKING_URI, or track.uri in the configuration), starts nothing and prints the links.
"""
_EXAMPLES = """\
examples:
  warplog ui                        browse the runs of this project
  ssh -L 5000:127.0.0.1:5000 box    then the address that `warplog ui` prints on the machine `box` works here
"""
_HOST = "127.0.0.1"
_ANSWER_S = 0.5
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the subcommand to the parser."""
    ui = commands.add_parser(
        "ui",
        help="browse the runs in MLflow",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ui.add_argument(
        "--port", type=int, default=0, metavar="N", help="default: 5000 if it is free, else another"
    )
    ui.add_argument("--no-browser", action="store_true", help="open no browser")
    ui.set_defaults(command="ui")


def run(options: argparse.Namespace, place: Path) -> int:
    """Serves the pages of the project in `place` until Ctrl-C, or prints the links to those of a server.

    Raises:
        WarplogError: MLflow is not installed, the store is missing, empty or does not answer, or the server ended.
    """
    if importlib.util.find_spec("mlflow") is None:
        raise WarplogError(packages.missing("mlflow"))
    from warplog.track import address, connection, links, log

    uri = store(place)
    with connection.connect(uri, write=False) as link:
        families = links.of_store(link.client, log.link_base(uri))
    if not families:
        raise WarplogError(f"{address.shown(uri)}: holds no runs; `{paths.command('track')}` logs a campaign")
    if address.is_server(uri):
        for family in families:
            for name, view in family.views.items():
                print(printable(f"{family.family}: {name}: {view}"))
        return 0
    ports = [options.port] if options.port else [urlsplit(log.LOCAL_UI).port or 0, 0]
    page = f"http://{_HOST}:{_free_port(*ports)}{links.PAGE}"
    environment = os.environ | connection.ALWAYS | {links.STORE: uri, links.STARTED_BY: str(os.getpid())}
    with suppress(KeyboardInterrupt):
        _serve(page, environment, not options.no_browser and options.terminal)
    return 0


def _serve(page: str, environment: dict[str, str], browser: bool) -> None:
    """Runs MLflow's server until Ctrl-C, and prints the address of the page as soon as it answers.

    Raises:
        WarplogError: the server ended.
    """
    at = urlsplit(page)
    command = [sys.executable, "-m", "mlflow", "server", "--app-name", "warplog"]
    command += ["--host", str(at.hostname), "--port", str(at.port), "--workers", "1"]
    waiting = True

    def announce() -> bool:
        nonlocal waiting
        if waiting and _answers(at):
            waiting = False
            print(page, flush=True)
            say("Ctrl-C ends it")
            if browser and any(map(os.environ.get, _SCREENS)):
                webbrowser.open(page)
        return False

    say("starting MLflow ...")
    # Without its runner of jobs, which only its pages for language models use.
    environment["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
    done = process.run(command, timeout_s=math.inf, env=environment, stop=announce)
    said = done.output_tail.strip().splitlines()
    why = next((line for line in reversed(said) if "error" in line.lower()), "".join(said[-1:]))
    raise WarplogError(f"MLflow's server ended ({process.explain_exit(done)}): {why}")


def _answers(at: SplitResult) -> bool:
    with suppress(OSError), socket.create_connection((at.hostname, at.port), _ANSWER_S):
        return True
    return False


def _free_port(*wanted: int) -> int:
    """Returns the first of these ports of the loopback interface that is free; 0 stands for any.

    Raises:
        WarplogError: all are in use.
    """
    for port in wanted:
        with suppress(OSError), socket.create_server((_HOST, port)) as free:
            return int(free.getsockname()[1])
    raise WarplogError(f"--port {wanted[-1]}: is in use; choose another one, or leave the option out")
