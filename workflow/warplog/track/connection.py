"""Connect to an MLflow store: fail within seconds if it does not answer, and send no telemetry."""

import contextlib
import logging
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from warplog.core.errors import WarplogError

FAMILY = "warplog.family"
ARTIFACTS = "mlartifacts"
_ADDRESS = "MLFLOW_TRACKING_URI"
_TIMEOUT = "MLFLOW_HTTP_REQUEST_TIMEOUT"
# No telemetry; no addresses on stdout; no progress bars in a log.
_ALWAYS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_CONFIGURE_LOGGING": "false",
}
# With MLflow's defaults (7 retries of 120 s), a job would wait for minutes if the server is down.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1"}


@dataclass(frozen=True)
class Connection:
    """A client whose store answers, and the artifact folder beside an SQLite database (None for other stores)."""

    client: Any
    artifacts: Path | None


@contextlib.contextmanager
def connect(uri: str) -> Iterator[Connection]:
    """Connects to a store; limits MLflow's retries and turns off its telemetry and progress output meanwhile.

    Raises:
        WarplogError: the store does not answer, or fails while it is in use; the message names the remedy.
    """
    with _environment(_ALWAYS, _PATIENCE):
        try:
            with _environment({}, {_TIMEOUT: "5"}):
                client, artifacts = _client(uri)
                client.search_experiments(max_results=1)
            with _environment({}, {_TIMEOUT: "60"}):
                yield Connection(client, artifacts)
        except WarplogError:
            raise
        except Exception as error:
            if not isinstance(error, _store_errors()):
                raise
            raise WarplogError(_explain(uri, error)) from error


def tracking_uri(default: str, environment: Mapping[str, str] = os.environ) -> str:
    """Returns MLFLOW_TRACKING_URI if it is set, else `default`."""
    return environment.get(_ADDRESS, "").strip() or default


def sqlite_file(uri: str) -> Path | None:
    """Returns the database file of an SQLite store; None for any other store."""
    return Path(uri.removeprefix("sqlite:///").split("?")[0]) if uri.startswith("sqlite:///") else None


def own_file(default: str) -> Path | None:
    """Returns the SQLite file of the configured store; None if it is not SQLite or MLFLOW_TRACKING_URI is set."""
    return sqlite_file(default) if _ADDRESS not in os.environ else None


def shown(uri: str) -> str:
    """Returns the address without user name and password."""
    return re.sub(r"(?<=://)[^/@]*@", "", uri)


def _store_errors() -> tuple[type[Exception], ...]:
    import requests
    import sqlalchemy.exc
    from mlflow.exceptions import MlflowException

    databases = (sqlalchemy.exc.SQLAlchemyError, sqlite3.Error, ImportError)  # a driver that is not installed
    return MlflowException, requests.RequestException, OSError, *databases


def _explain(uri: str, error: Exception) -> str:
    root: BaseException = error
    while root.__cause__ or root.__context__:
        root = root.__cause__ or root.__context__ or root
    cause = root if isinstance(root, OSError) and str(root) else error
    why = " ".join(shown(str(cause)).split())
    why = why if len(why) <= 200 else f"{why[:200]}…"
    if uri.startswith("sqlite:"):
        return f"{shown(uri)}: the MLflow store cannot be used ({why}); move it away and run again"
    return (
        f"{shown(uri)}: MLflow does not answer ({why}); start it, or unset MLFLOW_TRACKING_URI to use the store"
        " in results/, then run again; all results are kept on disk"
    )


def _client(uri: str) -> tuple[Any, Path | None]:
    database, artifacts = sqlite_file(uri), None
    if database is not None:
        database = database.resolve()
        artifacts = database.parent / ARTIFACTS
        database.parent.mkdir(parents=True, exist_ok=True)
        if database.is_file():
            _follow_the_move(database, artifacts)
    if urlsplit(uri).scheme.split("+")[0] in ("sqlite", "postgresql", "mysql", "mssql"):
        import sqlalchemy

        # Fail at once: MLflow itself retries ten times, over minutes, if the database does not answer.
        engine = sqlalchemy.create_engine(uri)
        engine.connect().close()
        engine.dispose()
    from mlflow import MlflowClient

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return MlflowClient(tracking_uri=uri, registry_uri=uri), artifacts


def _follow_the_move(database: Path, artifacts: Path) -> None:
    """Updates the absolute artifact paths of warplog's experiments after the project folder has moved."""
    # MLflow stores absolute paths, even for a relative artifact location, and has no call to change one
    # (github.com/mlflow/mlflow/issues/3719, open). The public alternative, a new experiment under the same
    # name, would leave the runs of earlier campaigns behind. Hence SQL on three tables of MLflow's schema, only for
    # an SQLite file and only for experiments with warplog's tag; a test moves a project and reads its files.
    with contextlib.closing(sqlite3.connect(database, timeout=10)) as sql, sql:
        tables = {row[0] for row in sql.execute("select name from sqlite_master where type = 'table'")}
        if not {"experiments", "experiment_tags", "runs"} <= tables:
            return
        logged = sql.execute(
            "select e.experiment_id, e.artifact_location from experiments e join experiment_tags t"
            " on t.experiment_id = e.experiment_id where t.key = ?",
            (FAMILY,),
        ).fetchall()
        for experiment, old in logged:
            new = str(artifacts / Path(str(old)).name)
            if Path(str(old)).parent.name == ARTIFACTS and old != new:
                sql.execute(
                    "update experiments set artifact_location = ? where experiment_id = ?", (new, experiment)
                )
                sql.execute(
                    "update runs set artifact_uri = ? || substr(artifact_uri, ?) where experiment_id = ?"
                    " and substr(artifact_uri, 1, ?) = ?",
                    (new, len(old) + 1, experiment, len(old) + 1, f"{old}/"),
                )


@contextlib.contextmanager
def _environment(always: Mapping[str, str], unless_set: Mapping[str, str]) -> Iterator[None]:
    settings = {**{k: v for k, v in unless_set.items() if k not in os.environ}, **always}
    before = {key: os.environ.get(key) for key in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
