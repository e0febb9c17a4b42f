"""Logs a project in a process of its own, which ends by SIGKILL before a chosen call of MLflow's client.

The processes are forked from one that has imported everything, since importing MLflow takes seconds.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import wraps
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from typing import Any

from tracked_project import Project

_IMPORTED = (
    "tracked_project",
    "mlflow.store.tracking.sqlalchemy_store",
    "mlflow.artifacts",
    "warplog.figures.shared.style",
    "pyarrow.parquet",
    "pyarrow.pandas_compat",
    "pandas.io.formats.csvs",
    "alembic.command",
    "alembic.autogenerate",
    "sqlalchemy.dialects.sqlite",
)


def context() -> ForkServerContext:
    """Returns what starts the processes; call once, before the first."""
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(list(_IMPORTED))
    return found


def log(started: ForkServerContext, project: Project, kill: int = 0) -> int:
    """Logs the project, killed before the client's call number `kill`; returns the number of calls.

    Raises:
        AssertionError: the process was not killed although it should be, or ended otherwise.
    """
    process, calls = start(started, project, kill)
    process.join(200)
    assert process.exitcode == (-signal.SIGKILL if kill else 0), (
        f"call {kill}: exit status {process.exitcode}"
    )
    return int(calls.value)


def start(started: ForkServerContext, project: Project, kill: int = 0) -> tuple[BaseProcess, Any]:
    """Returns the process, and the number of calls as a shared value."""
    calls = started.Value("i", 0)
    process = started.Process(target=_log, args=(project, kill, calls))
    process.start()
    return process, calls


def _log(project: Project, kill: int, calls: Any) -> None:
    from mlflow import MlflowClient

    inside = threading.local()

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def replaced(*arguments: Any, **options: Any) -> Any:
            if getattr(inside, "call", False):
                return call(*arguments, **options)
            with calls.get_lock():
                calls.value += 1
                number = calls.value
            if number == kill:
                os.kill(os.getpid(), signal.SIGKILL)
            inside.call = True
            try:
                return call(*arguments, **options)
            finally:
                inside.call = False

        return replaced

    for name, call in list(vars(MlflowClient).items()):
        if callable(call) and not name.startswith("_"):
            setattr(MlflowClient, name, counted(call))
    project.log()
