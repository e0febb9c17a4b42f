"""Runs Snakemake as `python -m snakemake` does, without importing it each time: see snakemake_server.py."""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

SERVER = Path(__file__).with_name("snakemake_server.py")
LONGEST_S = 580


@cache
def _server() -> subprocess.Popen[str]:
    """The process of this worker; it ends with its standard input."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["OPENBLAS_NUM_THREADS"] = "1"  # a process with several threads must not fork
    server = subprocess.Popen(
        [sys.executable, SERVER], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)
    return server


def run(place: Path, *arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs Snakemake in a folder, with these arguments and variables, and returns its status and output."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as log:
        request = {"folder": str(place), "arguments": arguments, "environment": dict(environment)}
        print(json.dumps({**request, "seconds": LONGEST_S, "log": log}), file=server.stdin, flush=True)
        status = int(server.stdout.readline())
        output = [(Path(log) / name).read_text() for name in ("stdout", "stderr")]
    return subprocess.CompletedProcess(["snakemake", *arguments], status, *output)
