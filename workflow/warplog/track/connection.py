"""Connect to an MLflow store: fail within seconds if it does not answer, and send no telemetry."""

import contextlib
import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warplog.core.errors import WarplogError
from warplog.core.paths import command
from warplog.track import address, causes, database

if TYPE_CHECKING:
    from mlflow import MlflowClient

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
_FIRST_ANSWER, _LATER_ANSWERS = ({"MLFLOW_HTTP_REQUEST_TIMEOUT": seconds} for seconds in ("5", "60"))


@dataclass(frozen=True)
class Connection:
    """A client whose store answers.

    `artifacts` is the artifact folder beside an SQLite database, to which no other process of warplog writes
    meanwhile; None for other stores, which have no such lock.
    """

    client: "MlflowClient"
    artifacts: Path | None


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
            with _environment({}, _FIRST_ANSWER):
                from mlflow import MlflowClient

                # MLflow logs the traceback of a database error, which is reported on one line.
                for name in ("mlflow", "alembic", "mlflow.store.db.utils"):
                    logging.getLogger(name).setLevel(logging.CRITICAL)
                artifacts = _ready(uri, write, held)
                client = MlflowClient(uri, uri)
                client.search_experiments(max_results=1)
            with _environment({}, _LATER_ANSWERS):
                yield Connection(client, artifacts)
        except WarplogError:
            raise
        except Exception as error:
            if not isinstance(error, causes.errors()):
                raise
            raise WarplogError(causes.explain(uri, error)) from None


def _ready(uri: str, write: bool, held: contextlib.ExitStack) -> Path | None:
    """Prepares a database for use; returns the folder for artifacts beside an SQLite file."""
    file = address.sqlite_file(uri)
    if file is None:
        if address.is_database(uri):
            import sqlalchemy

            # Fails at once if it does not answer; MLflow tries ten times.
            sqlalchemy.create_engine(uri, poolclass=sqlalchemy.NullPool).connect().close()
        return None
    file = file.resolve()
    if write:
        held.enter_context(database.hold(file))
        database.create(file)
        database.follow_the_move(file)
    elif not file.is_file():
        raise WarplogError(
            f"{address.shown(uri)}: no such store; `{command('track')}` logs a campaign to it, or correct the address"
        )
    else:
        try:
            database.follow_the_move(file)
        except sqlite3.OperationalError as error:
            if "locked" in str(error):  # else it cannot be changed, and can be read where it was made
                raise
    return file.parent / database.ARTIFACTS


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
