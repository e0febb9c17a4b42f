"""Runs Snakemake and scripts as Python does, without importing libraries each time: see snakemake_server.py."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import shared

SERVER = Path(__file__).with_name("snakemake_server.py")
LONGEST_S = 580


@cache
def _server() -> Path:
    """Returns the socket of a process that all workers of these tests share, and which ends with them."""
    return shared.made("snakemake", _start) / "socket"


def _start(folder: Path) -> None:
    folder.mkdir()
    tests = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {
        "OPENBLAS_NUM_THREADS": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }  # no threads before a fork
    environment |= {"DO_NOT_TRACK": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
    server = subprocess.Popen(
        [sys.executable, SERVER, folder, str(tests)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"


def interpreter() -> str:
    """Returns a program that does what Python does, and runs `-m snakemake` and scripts in forks of the process."""
    return str(_server().with_name("python"))


def run(place: Path, *arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs Snakemake in a folder, with these arguments and variables, and returns its status and output."""
    return run_program("snakemake", place, *arguments, environment=environment)


def run_program(
    program: str, place: Path, *arguments: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Does that for Snakemake or the script of this name."""
    request = {
        "program": program,
        "arguments": arguments,
        "folder": str(place),
        "environment": dict(environment),
    }
    with (
        tempfile.TemporaryFile("w+") as output,
        tempfile.TemporaryFile("w+") as errors,
        socket.socket(socket.AF_UNIX) as server,
    ):
        server.connect(str(_server()))
        socket.send_fds(server, [b"0"], [output.fileno(), errors.fileno()])
        server.sendall(json.dumps({**request, "seconds": LONGEST_S}).encode() + b"\n")
        status = int(server.makefile().readline())
        for log in (output, errors):
            log.seek(0)
        return subprocess.CompletedProcess([program, *arguments], status, output.read(), errors.read())
