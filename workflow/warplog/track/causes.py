"""Explains errors of a tracking store: the cause and the remedy, on one line and without secrets."""

import re
import sqlite3
from collections.abc import Iterator, Mapping

from warplog.track.address import shown, without_secrets

_KEPT = "all results are kept on disk"
# What MLflow and its database drivers say -> cause and remedy.
_CAUSES: Mapping[str, str] = {
    r"error code 401|UNAUTHENTICATED|password authentication failed|Access denied for user": (
        "the login was refused; set user name and password in MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD,"
        " or in the address, then run again"
    ),
    r"error code 403|PERMISSION_DENIED": (
        "this user may not write there (403); ask for the permission, or use another user"
    ),
    r"out-of-date database schema|Can't locate revision|no such (?:table|column)|duplicate column|already exists": (
        "its tables are of another MLflow version or incomplete; copy it and run `mlflow db upgrade {uri}`, or use"
        " another store"
    ),
    r"database is locked": "locked by another process; stop it or wait until it is done, then run again",
    r"Connection refused|Connection aborted|timed out|timeout expired|Failed to resolve|not translate host name": (
        "MLflow does not answer; check the address and start the server, or unset MLFLOW_TRACKING_URI to use the store"
        f" in results/, then run again; {_KEPT}"
    ),
}


def errors() -> tuple[type[Exception], ...]:
    """Returns the exceptions that MLflow and its stores raise; of the system, only those of the network."""
    import requests
    import sqlalchemy.exc
    from mlflow.exceptions import MlflowException

    databases = (sqlalchemy.exc.SQLAlchemyError, sqlite3.Error, ImportError)  # a driver that is not installed
    return MlflowException, requests.RequestException, *databases


def explain(uri: str, error: Exception) -> str:
    """Returns one line: the address without secrets, the cause of the error, and the remedy."""
    said = "\n".join(f"{one}" for one in _chain(error))
    for pattern, cause in _CAUSES.items():
        if re.search(pattern, said):
            return f"{shown(uri)}: {cause.format(uri=shown(uri))}"
    why = without_secrets(str(error).partition("[SQL:")[0], uri)[:400] or type(error).__name__
    return (
        f"{shown(uri)}: MLflow failed ({why}); remove the cause or use another store, then run again; {_KEPT}"
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
