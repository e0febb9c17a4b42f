"""Runs Snakemake, and the scripts of its jobs, in forks of a process that has imported the libraries they use.

A new process would spend one to three seconds on these imports. A fork sees the folder, the environment, the module
path and the sitecustomize that a new process would see, and imports warplog itself if its PYTHONPATH has another one
than that of CHECKOUT. PNG files have few pixels, unless the variable WARPLOG_SHARP is set.

The process listens in the folder that is its first argument until the process whose number is the second one ends. A
connection passes standard output and error, and a line of JSON with the arguments of `run`; the answer is the exit
status. If the connection is closed before, the program is killed.
"""

import atexit
import contextlib
import gc
import hashlib
import importlib
import json
import os
import pkgutil
import random
import runpy
import select
import signal
import site
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import snakemake.cli
import vl_convert

import mlflow_tables
import warplog
from warplog.cli import running

LIBRARIES = (
    "numpy", "pandas", "pyarrow.dataset", "pyarrow.pandas_compat", "yaml", "jsonschema_rs", "simpleeval",
    "pynvml", "symtable", "nbformat", "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg", "seaborn", "scipy.optimize", "scipy.stats", "PIL.Image", "jinja2",
    "pygments.lexers", "altair", "mlflow", "mlflow.store.tracking.sqlalchemy_store",
    "mlflow.store.tracking.sqlalchemy_workspace_store", "alembic.command", "alembic.autogenerate",
    "sqlalchemy.dialects.sqlite",
)  # fmt: skip
# The folder of the package under test.
CHECKOUT = str(Path(warplog.__file__).parents[1])
# Snakemake starts the script of a job with this program instead of Python, and tests and `warplog run` start Snakemake
# with it.
INTERPRETER = """\
#!{python} -IS
import json, os, signal, socket, sys
if sys.argv[1:3] == ["-m", "snakemake"]:
    del sys.argv[1]
elif sys.argv[1:3] == ["-c", {run!r}]:
    sys.argv[1:3] = ["snakemake"]
elif not sys.argv[1:] or not sys.argv[1].endswith(".py"):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
request = {{"program": sys.argv[1], "arguments": sys.argv[2:], "folder": os.getcwd(), "environment": dict(os.environ)}}
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
socket.send_fds(server, [b"0"], [1, 2])
server.sendall(json.dumps({{**request, "seconds": 0}}).encode() + b"\\n")
status = int(server.makefile().readline())
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


def run(
    program: str,
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
    seconds: int,
    interpreter: Path,
) -> None:
    """Does what `python -m snakemake` or `python <program>.py` would do, for at most so many seconds (0: no limit)."""
    signal.alarm(seconds)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    random.seed()
    is_script = program != "snakemake"
    first = str(Path(program).parent) if is_script else ""
    packages = [path for path in environment.get("PYTHONPATH", "").split(":") if path]
    sys.path[:1] = [first, *packages]
    if any(Path(path, warplog.__name__).is_dir() for path in packages if path != CHECKOUT):
        for name in [name for name in sys.modules if name.partition(".")[0] == warplog.__name__]:
            del sys.modules[name]
    if "WARPLOG_SHARP" not in environment and "warplog.figures.shared.style" in sys.modules:
        sys.modules[
            "warplog.figures.shared.style"
        ].PNG_DPI = 40  # a quarter of the time of a figure is spent on pixels
    sys.modules.pop("sitecustomize", None)  # Python has one of its own on some systems
    site.execsitecustomize()
    sys.argv = [program if is_script else snakemake.cli.__file__, *arguments]
    if is_script:
        runpy.run_path(program, run_name="__main__")
    else:
        sys.executable = str(interpreter)
        snakemake.cli.main(arguments)


def finish(program: Callable[[], None]) -> NoReturn:
    """Runs a program and ends this process as Python would, but without freeing every object, which takes 0.2 s."""
    status: object = 0
    try:
        program()
    except SystemExit as end:
        status = end.code
    except Exception:
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    if not isinstance(status, int | None):
        print(status, file=sys.stderr)
        status = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit((status or 0) & 0xFF)


def start(link: socket.socket, listener: socket.socket, interpreter: Path) -> int:
    """Runs the program that a connection asks for in a fork; returns its number."""
    _, (output, errors), _, _ = socket.recv_fds(link, 1, 2)
    with link.makefile() as lines:
        request = json.loads(lines.readline())
    child = os.fork()
    if child == 0:
        listener.close()
        os.dup2(output, 1)
        os.dup2(errors, 2)
        finish(lambda: run(**request, interpreter=interpreter))
    os.close(output)
    os.close(errors)
    return child


def serve(listener: socket.socket, ended: int, interpreter: Path) -> None:
    """Runs programs until the descriptor `ended` can be read; writes the exit status of each to its connection.

    If a connection is closed before, its program is killed.
    """
    running: dict[int, tuple[int, socket.socket]] = {}
    while True:
        links = {link: descriptor for descriptor, (_, link) in running.items()}
        ready = select.select([ended, listener, *running, *links], [], [])[0]
        if ended in ready:
            return
        for descriptor in [one for one in running if one in ready]:
            child, link = running.pop(descriptor)
            os.close(descriptor)
            _, status = os.waitpid(child, 0)
            with contextlib.suppress(OSError), link:
                link.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        for link, descriptor in links.items():
            if link in ready and descriptor in running:
                child, _ = running.pop(descriptor)
                os.close(descriptor)
                link.close()
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        if listener in ready:
            link, _ = listener.accept()
            child = start(link, listener, interpreter)
            running[os.pidfd_open(child)] = child, link


def bundled_once(folder: Path) -> Callable[..., str]:
    """Returns vl_convert.javascript_bundle, which takes 1.6 s, with a memory in a folder for all forks."""
    bundle = vl_convert.javascript_bundle

    def bundled(snippet: str | None = None, vl_version: str | None = None) -> str:
        kept = folder / f"{hashlib.sha256(repr((snippet, vl_version)).encode()).hexdigest()}.js"
        if not kept.is_file():
            made = kept.with_suffix(f".{os.getpid()}")
            made.write_text(bundle(snippet, vl_version), encoding="utf-8")
            made.replace(kept)
        return kept.read_text(encoding="utf-8")

    return bundled


def main(folder: Path, tests: int) -> None:
    ended = os.pidfd_open(tests)
    vl_convert.javascript_bundle = bundled_once(folder)
    snakemake.cli.get_argument_parser()  # imports all plugins
    for name in LIBRARIES:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(warplog.__path__, "warplog."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for kind, suffix in ("html", ".html.j2"), ("markdown", ".md.j2"):
        templates = importlib.import_module(f"warplog.worklog.{kind}")._environment()
        for name in templates.list_templates(filter_func=lambda name, suffix=suffix: name.endswith(suffix)):
            templates.get_template(name)  # compiling takes half of the time of a page
    # What the plan of each run reads: what figures need, and the shipped families, whose YAML is kept by its text.
    importlib.import_module("warplog.figures").needs()
    importlib.import_module("warplog.catalog.family").load([Path(CHECKOUT).parent / "kernels"])
    mlflow_tables.copy_tables()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    listener.listen()
    interpreter = folder / "python"
    interpreter.write_text(
        INTERPRETER.format(python=sys.executable, run=running._SNAKEMAKE, address=str(folder / "socket"))
    )
    interpreter.chmod(0o755)
    gc.freeze()  # shared with the forks as long as nothing writes to it
    gc.set_threshold(100_000, 50, 100)
    print("ready", flush=True)
    serve(listener, ended, interpreter)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
