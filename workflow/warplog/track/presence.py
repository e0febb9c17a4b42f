"""Whether a tracking store still holds what was logged to it; asked when a workflow starts, so without MLflow.

Importing MLflow takes more than a second. A database is asked with one query, a server with two small requests.
"""

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from warplog.core.errors import WarplogError
from warplog.records import door
from warplog.records.fields import Frozen
from warplog.track.address import is_database, is_server, shown, sqlite_file


class LoggedExperiment(Frozen, frozen=True, kw_only=True):
    """One experiment; `home` is the variant whose run holds what belongs to the whole family. runs: ids by variant."""

    family: str
    experiment_id: str
    link: str
    home: str
    runs: Mapping[str, str]


class LoggedCampaign(Frozen, frozen=True, kw_only=True):
    """The content of the store after logging, the same after a second run that changed nothing.

    Attributes:
        uri: the store, without a password.
        last: the run that was written last.
        attempt: number of the attempt, see `presence.destination`.
    """

    uri: str
    experiments: tuple[LoggedExperiment, ...]
    last: str
    attempt: int = 1


_PATIENCE_S = 2.0
_QUERY = (
    "select count(*) from runs r join experiments e on e.experiment_id = r.experiment_id"
    " where r.lifecycle_stage = 'active' and e.lifecycle_stage = 'active' and r.run_uuid in "
)
_TRUE = ("true", "1")


def destination(uri: str, logged: Path) -> dict[str, str | int]:
    """Returns the store that is logged to, and the number of the attempt: a parameter of the job that logs.

    `logged` is the record of that job. The number is that of the record as long as the store holds its runs, so that
    the job does not run again, and a higher one if the store was wiped or restored or a run was deleted. A store that
    does not answer counts as unchanged.
    """
    try:
        record = door.decode(door.read_json(logged), LoggedCampaign, str(logged))
    except WarplogError:
        return {"store": shown(uri), "attempt": 1}
    lost = record.uri == shown(uri) and holds(uri, record) is False
    return {"store": shown(uri), "attempt": record.attempt + lost}


@cache
def decided(uri: str, logged: Path) -> dict[str, str | int]:
    """Returns `destination` as it was at the first call in this process.

    Snakemake deletes the record before it runs the job, and then asks for the parameters again.
    """
    return destination(uri, logged)


def holds(uri: str, record: LoggedCampaign) -> bool | None:
    """Returns whether all runs in a record of `log.log_campaign` are in the store and not deleted; None if unknown."""
    runs = sorted({run for experiment in record.experiments for run in experiment.runs.values()})
    file = sqlite_file(uri)
    if file is not None:
        return _in_file(file, runs)
    if is_server(uri):
        ids = sorted({experiment.experiment_id for experiment in record.experiments})
        return _on_server(uri, ids, runs, record.last)
    return _in_database(uri, runs) if is_database(uri) else None


def _in_file(file: Path, runs: list[str]) -> bool | None:
    if not file.is_file():
        return False
    try:
        with closing(
            sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE_S)
        ) as sql:
            found = sql.execute(f"{_QUERY} ({', '.join('?' * len(runs))})", runs).fetchone()
    except sqlite3.Error as error:
        # Without these tables, or as no database at all, it does not hold the runs.
        return None if error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) else False
    return bool(found[0] == len(runs))


def _in_database(uri: str, runs: list[str]) -> bool | None:
    import sqlalchemy

    try:
        engine = sqlalchemy.create_engine(uri)
        query = sqlalchemy.text(f"{_QUERY} :runs").bindparams(
            sqlalchemy.bindparam("runs", runs, expanding=True)
        )
        with engine.connect() as connection:
            return bool(connection.execute(query).scalar() == len(runs))
    except sqlalchemy.exc.ProgrammingError:  # no such table
        return False
    except (sqlalchemy.exc.SQLAlchemyError, ImportError, ValueError):
        return None


def _on_server(uri: str, experiments: list[str], runs: list[str], last: str) -> bool | None:
    """Asks for deleted runs, and for the one that was written last, which a restored older store lacks.

    A list of all runs would contain all their metrics, and take a second.
    """
    deleted = _search(uri, experiments, runs, "DELETED_ONLY")
    if deleted is None or deleted:
        return None if deleted is None else False
    active = _search(uri, experiments, [last], "ACTIVE_ONLY")
    return None if active is None else active == {last}


def _search(uri: str, experiments: list[str], runs: list[str], view: str) -> set[str] | None:
    """Returns those of the runs that a server holds as active or deleted ones; None if it does not say."""
    import requests

    query: Any = {
        "experiment_ids": experiments,
        "filter": f"attributes.run_id IN ({', '.join(repr(run) for run in runs)})",
        "run_view_type": view,
    }
    token = os.environ.get("MLFLOW_TRACKING_TOKEN", "")
    user = os.environ.get("MLFLOW_TRACKING_USERNAME", "")
    try:
        response = requests.post(
            f"{uri.rstrip('/')}/api/2.0/mlflow/runs/search",
            json=query,
            headers={"Authorization": f"Bearer {token}"} if token else None,
            auth=(user, os.environ.get("MLFLOW_TRACKING_PASSWORD", "")) if user else None,
            verify=os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() not in _TRUE,
            timeout=_PATIENCE_S,
        )
        found = response.json()
    except (requests.RequestException, ValueError):
        return None
    if not isinstance(found, dict):
        return None
    if response.ok or found.get("error_code") == "RESOURCE_DOES_NOT_EXIST":
        return {run["info"]["run_id"] for run in found.get("runs", [])}
    return None
