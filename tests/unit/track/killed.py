"""Logs a project in a process of its own, which ends by SIGKILL before a chosen call of MLflow's client.

The processes are forked from one that has imported everything, since that takes seconds, as is an MLflow server.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import wraps
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
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


def serve_mlflow(port: int, folder: Path) -> None:
    """Does what `mlflow server` does, with its database and artifacts in a folder."""
    from mlflow.server import constants

    from mlflow_tables import copy_tables

    os.environ |= {
        constants.BACKEND_STORE_URI_ENV_VAR: f"sqlite:///{folder}/server.db",
        constants.ARTIFACT_ROOT_ENV_VAR: "mlflow-artifacts:/",
        constants.ARTIFACTS_DESTINATION_ENV_VAR: f"{folder}/artifacts",
        constants.SERVE_ARTIFACTS_ENV_VAR: "true",
    }
    copy_tables()
    import uvicorn
    from mlflow.server.fastapi_app import app

    uvicorn.run(app, port=port, log_level="error")


class Killed:
    """A process that logs projects, or lets a fork of itself do so that is killed."""

    def __init__(self) -> None:
        started = context()
        self._link, other = started.Pipe()
        self._process = started.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()

    def log(self, project: Project, kill: int = 0) -> list[str]:
        """Logs the project, killed before the client's call number `kill`; returns the calls by name, unless killed.

        Raises:
            AssertionError: the process was not killed although it should be, or does not answer.
        """
        self._link.send((project, kill))
        assert self._link.poll(200)
        status, calls = self._link.recv()
        assert status == (-signal.SIGKILL if kill else 0), f"call {kill}: exit status {status}"
        return list(calls)

    def end(self) -> None:
        self._process.kill()
        self._process.join()


def _serve(link: Connection) -> None:
    calls = _Calls()
    while True:
        project, kill = link.recv()
        status = 0
        if not kill:
            calls.names = []
            project.log()
        elif (child := os.fork()) == 0:
            calls.names, calls.kill = [], kill
            try:
                project.log()
            finally:
                os._exit(1)
        else:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        link.send((status, calls.names))


class _Calls:
    """Lists the calls of MLflow's client in this process, and kills it before number `kill`."""

    def __init__(self) -> None:
        from mlflow import MlflowClient

        self.names: list[str] = []
        self.kill = 0
        self._inside = threading.local()
        self._lock = threading.Lock()
        for name, call in list(vars(MlflowClient).items()):
            if callable(call) and not name.startswith("_"):
                setattr(MlflowClient, name, self._counted(call))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def replaced(*arguments: Any, **options: Any) -> Any:
            if getattr(self._inside, "call", False):
                return call(*arguments, **options)
            with self._lock:
                self.names.append(call.__name__)
                if len(self.names) == self.kill:
                    os.kill(os.getpid(), signal.SIGKILL)
            self._inside.call = True
            try:
                return call(*arguments, **options)
            finally:
                self._inside.call = False

        return replaced
