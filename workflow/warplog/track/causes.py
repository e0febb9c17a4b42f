"""Explains errors of a tracking store: the cause and the remedy, on one line and without secrets."""

import errno
import os
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from warplog.core.errors import fullest
from warplog.core.process import processes_with
from warplog.track.address import is_server, shown, sqlite_file, without_secrets

_KEPT = "all results are kept on disk"
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_IN_THE_WAY = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
# Module that SQLAlchemy imports -> package that provides it.
_DRIVERS = {"psycopg2": "psycopg2-binary", "psycopg": "psycopg[binary]", "MySQLdb": "mysqlclient"}
_NO_LOGIN = (
    "the login was refused; set user name and password in MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD,"
    " or in the address, then run again"
)
_GONE = "a run or experiment was deleted while it was used; run again, and it is logged anew"
_MIGRATED = "another process is creating or upgrading the store; wait until it is done, then run again"
_OLDER = "was made by an older MLflow; copy it, then run `mlflow db upgrade {uri}`, or use another store"
# Words of database servers and of MLflow about a database -> cause and remedy.
_WORDS = {
    r"password authentication failed|Access denied for user|no password supplied": (
        "the login was refused; correct user name and password in MLFLOW_TRACKING_URI, then run again"
    ),
    r"database \"[^\"]*\" does not exist|Unknown database": "no such database; create it, or correct the address",
    r"timeout expired|timed out": "does not answer in time; check the address and the network, then run again",
    r"Connection refused|could not connect|Can't connect": "nothing answers there; start the server, then run again",
    r"could not translate host name|Unknown (?:MySQL )?server host": "no such host; correct the address",
    r"unsupported URI": "MLflow knows no such store; use sqlite, postgresql, mysql, mssql or an http address",
    r"out-of-date database schema": _OLDER,
    r"Can't locate revision": "was made by a newer MLflow; use that version, or another store",
    r"duplicate column name|already exists|_alembic_tmp": _MIGRATED,
}


def errors() -> tuple[type[Exception], ...]:
    """Returns the exceptions that MLflow, its stores and this package raise about a store."""
    import requests
    import sqlalchemy.exc
    from mlflow.exceptions import MlflowException

    databases = (sqlalchemy.exc.SQLAlchemyError, sqlite3.Error, ImportError)  # a driver that is not installed
    return MlflowException, requests.RequestException, OSError, *databases


def explain(uri: str, error: Exception) -> str:
    """Returns one line: the address without secrets, the cause of the error, and the remedy."""
    chain = list(_chain(error))
    for find in (_of_sqlite, _of_the_system, _of_a_driver, _of_a_server, _of_a_database):
        if found := find(uri, chain):
            return f"{shown(uri)}: {found}"
    why = without_secrets(str(error), uri)[:200] or type(error).__name__
    return f"{shown(uri)}: MLflow failed ({why}); run again, or use another store; {_KEPT}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yields the error and the errors that caused it, including those that a library stored as an attribute."""
    seen: list[BaseException] = []
    left: list[object] = [error]
    while left:
        one = left.pop(0)
        if isinstance(one, BaseException) and one not in seen:
            seen.append(one)
            yield one
            left += [one.__cause__, one.__context__, getattr(one, "orig", None), getattr(one, "reason", None)]
            left += one.args


def _of_sqlite(uri: str, chain: list[BaseException]) -> str:
    names = [getattr(e, "sqlite_errorname", "") or "" for e in chain if isinstance(e, sqlite3.Error)]
    name = next((name for name in names if name), "")
    file = sqlite_file(uri)
    if not name or file is None:
        return ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        owners = ", ".join(map(str, processes_with(file)))
        who = f"another process ({owners})" if owners else "another process"
        return f"locked by {who}; stop it or wait until it is done, then run again"
    # SQLite cannot create its journal on a full disk, although it may.
    may_open = file.is_file() and os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)
    if name.startswith("SQLITE_FULL") or (name.startswith("SQLITE_CANTOPEN") and may_open):
        return _full(file)
    if name.startswith("SQLITE_IOERR"):
        return f"the disk failed to read or write ({name}); check it, then run again; {_KEPT}"
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN", "SQLITE_AUTH")):
        return _forbidden(file)
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return f"not an SQLite database, or damaged; move it away and run again; {_KEPT}"
    return ""


def _of_the_system(uri: str, chain: list[BaseException]) -> str:
    for error in chain:
        if isinstance(error, OSError) and error.errno in _NO_SPACE:
            place = error.filename or sqlite_file(uri) or Path()
            return f"no space for {place}: {_full(Path(place))}" if error.filename else _full(Path(place))
        if isinstance(error, OSError) and error.errno in _FORBIDDEN:
            return _forbidden(Path(error.filename or sqlite_file(uri) or "."))
        if isinstance(error, OSError) and error.errno in _IN_THE_WAY:
            return f"{error.filename2 or error.filename} is in the way; move it away, or correct the address"
    return ""


def _of_a_driver(uri: str, chain: list[BaseException]) -> str:
    for error in chain:
        if isinstance(error, ModuleNotFoundError) and error.name:
            package = _DRIVERS.get(error.name, error.name)
            return f"the database driver {error.name} is missing; run `uv pip install '{package}'`, then run again"
        if type(error).__name__ == "NoSuchModuleError":
            return "MLflow knows no such store; use sqlite, postgresql, mysql, mssql or an http address"
    return ""


def _of_a_server(uri: str, chain: list[BaseException]) -> str:
    import requests
    import urllib3.exceptions
    from mlflow.exceptions import RestException

    status = next((code for error in chain if (code := _status(error))), 0)
    if any(getattr(error, "error_code", "") == "RESOURCE_DOES_NOT_EXIST" for error in chain):
        return _GONE
    if not is_server(uri):
        return ""
    if status == 401:
        return _NO_LOGIN
    if status == 403:
        return "this user may not write there (403); ask for the permission, or use another user"
    if status:
        return (
            f"responds with status {status}; check that host, port and path are those of an MLflow server, or look at"
            f" its log; {_KEPT}"
        )
    slow = (requests.Timeout, urllib3.exceptions.TimeoutError)
    refused = any(isinstance(error, ConnectionRefusedError) for error in chain)
    if not refused and any(isinstance(error, slow) for error in chain):
        return f"MLflow does not answer in time; check the address and the server, then run again; {_KEPT}"
    if any(isinstance(error, requests.exceptions.SSLError) for error in chain):
        return "the certificate was refused; name its authority in REQUESTS_CA_BUNDLE, then run again"
    answer = next((error.json for error in chain if isinstance(error, RestException)), None)
    if answer is not None and "error_code" not in answer:  # of a proxy, for example
        words = without_secrets(str(answer), uri)[:200] or "the answer repeats the login"
        return f"does not answer as an MLflow server ({words}); check the address and the login; {_KEPT}"
    if any(isinstance(error, requests.ConnectionError) for error in chain):
        return (
            "MLflow does not answer; start the server, or unset MLFLOW_TRACKING_URI to use the store in results/,"
            f" then run again; {_KEPT}"
        )
    return ""


def _of_a_database(uri: str, chain: list[BaseException]) -> str:
    texts = [str(error) for error in chain]
    for pattern, found in _WORDS.items():
        if any(re.search(pattern, text) for text in texts):
            return found.format(uri=shown(uri))
    return ""


def _status(error: BaseException) -> int:
    """Returns the HTTP status of a failed request, from MLflow's error code or message; 0 if there is none."""
    from mlflow.exceptions import RestException

    if isinstance(error, RestException) and error.get_http_status_code() in (401, 403, 404):
        return int(error.get_http_status_code())
    found = re.search(r"error code (\d{3}) != 200|too many (\d{3}) error", str(error))
    return int(found[1] or found[2]) if found else 0


def _full(*files: Path) -> str:
    return f"the disk is full ({fullest(*files)}); free some space, then run again"


def _forbidden(path: Path) -> str:
    return f"{path} cannot be written; give yourself the permission to write it and its folder, or use another store"
