"""Connect to an MLflow store: fail within seconds if it does not answer, and send no telemetry."""

import contextlib
import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplog.core.errors import WarplogError
from warplog.core.paths import command
from warplog.track import address, causes, database

FAMILY = database.FAMILY
_TIMEOUT = "MLFLOW_HTTP_REQUEST_TIMEOUT"
# No telemetry; no addresses on stdout; no progress bars in a log.
ALWAYS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_CONFIGURE_LOGGING": "false",
}
# With the defaults (7 retries of 120 s; PostgreSQL without end), a job would wait for minutes if the server is down.
_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "PGCONNECT_TIMEOUT": "5",
}


@dataclass(frozen=True)
class Connection:
    """A client whose store answers.

    Attributes:
        client: an MlflowClient.
        artifacts: the artifact folder beside an SQLite database; None for other stores.
        alone: whether no other process of warplog can write to the store meanwhile.
    """

    client: Any
    artifacts: Path | None
    alone: bool


@contextlib.contextmanager
def connect(uri: str, write: bool = True) -> Iterator[Connection]:
    """Connects to a store; limits MLflow's retries and turns off its telemetry and progress output meanwhile.

    To write to an SQLite store, it is created if necessary, and kept from other processes of warplog.

    Raises:
        WarplogError: the store does not answer, does not exist (unless `write`), or fails while it is in use; the
            message names the remedy.
    """
    with _environment(ALWAYS, _PATIENCE), contextlib.ExitStack() as held:
        try:
            address.check(uri)
            with _environment({}, {_TIMEOUT: "5"}):
                artifacts = _ready(uri, write, held)
                client = _client(uri)
                client.search_experiments(max_results=1)
            with _environment({}, {_TIMEOUT: "60"}):
                yield Connection(client, artifacts, write and artifacts is not None)
        except WarplogError:
            raise
        except Exception as error:
            if not isinstance(error, causes.errors()):
                raise
            raise WarplogError(causes.explain(uri, error)) from None


def _ready(uri: str, write: bool, held: contextlib.ExitStack) -> Path | None:
    """Prepares a database for use; returns the folder for artifacts beside an SQLite file."""
    _silence()
    file = address.sqlite_file(uri)
    if file is None:
        if address.is_database(uri):
            _try_once(uri)
        return None
    file = file.resolve()
    if write:
        held.enter_context(database.hold(file))
        database.prepare(file)
        database.follow_the_move(file)
    elif not file.is_file():
        raise WarplogError(
            f"{address.shown(uri)}: no such store; `{command('track')}` logs a campaign to it, or correct the address"
        )
    else:
        with contextlib.suppress(
            sqlite3.Error
        ):  # a store that cannot be changed can be read where it was made
            database.follow_the_move(file)
    return file.parent / database.ARTIFACTS


def _try_once(uri: str) -> None:
    """Connects to a database and fails at once if it does not answer; MLflow itself retries ten times."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(uri)
    try:
        engine.connect().close()
    finally:
        engine.dispose()


def _client(uri: str) -> Any:
    from mlflow import MlflowClient

    _silence()
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def _silence() -> None:
    # MLflow logs the traceback of a database error, which is reported on one line.
    for name in ("mlflow", "alembic", "mlflow.store.db.utils"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


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
