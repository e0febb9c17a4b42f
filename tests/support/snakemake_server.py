"""Runs Snakemake in forks of a process that has imported it, which takes half the time of a new process.

The process reads a request per line (the arguments of `run`) and writes the exit status. A fork sees the folder, the
environment, the module path and the sitecustomize that a new process would see.
"""

import json
import os
import signal
import site
import sys
from pathlib import Path
from typing import NoReturn

import numpy  # noqa: F401  # planning imports it
import snakemake.cli
import yaml  # noqa: F401


def run(folder: str, arguments: list[str], environment: dict[str, str], seconds: int) -> NoReturn:
    """Ends this process as `python -m snakemake` would end there."""
    signal.alarm(seconds)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:1] = ["", *filter(None, environment.get("PYTHONPATH", "").split(":"))]
    site.execsitecustomize()
    sys.argv = [snakemake.cli.__file__, *arguments]
    snakemake.cli.main(arguments)
    raise SystemExit(0)


def main() -> None:
    snakemake.cli.get_argument_parser()  # imports all plugins
    for line in sys.stdin:
        request = json.loads(line)
        log = Path(request.pop("log"))
        child = os.fork()
        if child == 0:
            for stream, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(os.open(log / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
            run(**request)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
