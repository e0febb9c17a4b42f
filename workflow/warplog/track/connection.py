"""Reaching an MLflow store: within seconds or not at all, and without a call home."""

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
# Never a call home; no address lines on stdout; no progress bars in a log.
_ALWAYS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_CONFIGURE_LOGGING": "false",
}
# MLflow's defaults (7 retries of 120 s) would keep a dead server's job waiting for minutes.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1"}


@dataclass(frozen=True)
class Connection:
    """A client that was answered, and the folder for files beside an SQLite database (else None)."""

    client: Any
    artifacts: Path | None


@contextlib.contextmanager
def connect(uri: str) -> Iterator[Connection]:
    """A store that answers; MLflow's retries, telemetry and chatter are kept short meanwhile.

    Raises:
        WarplogError: the store does not answer, or fails while it is used; the text names the remedy.
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
    """MLFLOW_TRACKING_URI where it is set, else `default`."""
    return environment.get(_ADDRESS, "").strip() or default


def sqlite_file(uri: str) -> Path | None:
    """The file of an SQLite store; None of any other."""
    return Path(uri.removeprefix("sqlite:///").split("?")[0]) if uri.startswith("sqlite:///") else None


def own_file(default: str) -> Path | None:
    """The SQLite file of the configured store; None where it is none, or where MLFLOW_TRACKING_URI names a store."""
    return sqlite_file(default) if _ADDRESS not in os.environ else None


def shown(uri: str) -> str:
    """The address without a password in it."""
    return re.sub(r"(?<=://)[^/@]*@", "", uri)


def _store_errors() -> tuple[type[Exception], ...]:
    import requests
    import sqlalchemy.exc
    from mlflow.exceptions import MlflowException

    databases = (sqlalchemy.exc.SQLAlchemyError, sqlite3.Error, ImportError)  # a driver that is not installed
    return MlflowException, requests.RequestException, OSError, *databases


def _explain(uri: str, error: Exception) -> str:
    first: BaseException = error
    while first.__cause__ or first.__context__:
        first = first.__cause__ or first.__context__ or first
    told = first if isinstance(first, OSError) and str(first) else error
    why = " ".join(shown(str(told)).split())
    why = why if len(why) <= 200 else f"{why[:200]}…"
    if uri.startswith("sqlite:"):
        return f"{shown(uri)}: the MLflow store cannot be used ({why}); move it away and run again"
    return (
        f"{shown(uri)}: MLflow does not answer ({why}); start it, or unset MLFLOW_TRACKING_URI for the store"
        " in results/, then run again: the results are safe on disk"
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

        # MLflow would try a database that is away ten times, over minutes.
        engine = sqlalchemy.create_engine(uri)
        engine.connect().close()
        engine.dispose()
    from mlflow import MlflowClient

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return MlflowClient(tracking_uri=uri, registry_uri=uri), artifacts


def _follow_the_move(database: Path, artifacts: Path) -> None:
    """Mends the absolute paths of our experiments, whose files lie beside the database, after a move."""
    with contextlib.closing(sqlite3.connect(database, timeout=10)) as link, link:
        tables = {row[0] for row in link.execute("select name from sqlite_master where type = 'table'")}
        if not {"experiments", "experiment_tags", "runs"} <= tables:
            return
        mine = link.execute(
            "select e.experiment_id, e.artifact_location from experiments e join experiment_tags t"
            " on t.experiment_id = e.experiment_id where t.key = ?", (FAMILY,)
        ).fetchall()  # fmt: skip
        for experiment, place in mine:
            wanted = str(artifacts / Path(str(place)).name)
            if Path(str(place)).parent.name == ARTIFACTS and place != wanted:
                link.execute(
                    "update experiments set artifact_location = ? where experiment_id = ?",
                    (wanted, experiment),
                )
                link.execute(
                    "update runs set artifact_uri = ? || substr(artifact_uri, ?) where experiment_id = ?"
                    " and substr(artifact_uri, 1, ?) = ?",
                    (wanted, len(place) + 1, experiment, len(place) + 1, f"{place}/"),
                )


@contextlib.contextmanager
def _environment(always: Mapping[str, str], unless_set: Mapping[str, str]) -> Iterator[None]:
    wanted = {**{k: v for k, v in unless_set.items() if k not in os.environ}, **always}
    before = {key: os.environ.get(key) for key in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
