"""Whether a tracking store still holds the campaign that was logged to it; asked when a workflow starts."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.records import door
from warplog.records.fields import Frozen
from warplog.track import connection
from warplog.track.address import shown, sqlite_file


class LoggedExperiment(Frozen, frozen=True, kw_only=True):
    """One experiment: its id, the link to its saved view, its current runs: ids by variant.

    `home` is the variant whose run holds what belongs to the whole family.
    """

    family: str
    experiment_id: str
    link: str
    home: str
    runs: Mapping[str, str]


class LoggedCampaign(Frozen, frozen=True, kw_only=True):
    """The content of the store after logging, the same after a second run that changed nothing.

    `uri` is the store, without a password; `last` the run that was written last; `attempt` as in `destination`.
    """

    uri: str
    experiments: tuple[LoggedExperiment, ...]
    last: str
    attempt: int = 1


class LoggedFigures(Frozen, frozen=True, kw_only=True):
    """The store, without a password, and the names of the figures in it, by family."""

    uri: str
    figures: Mapping[str, tuple[str, ...]]


class Destination(Frozen, frozen=True, kw_only=True):
    """The store that is logged to, without a password, and the number of the attempt."""

    store: str
    attempt: int


@cache
def destination(uri: str, logged: Path) -> Destination:
    """Returns the parameter of the job that logs, as it was at the first call in this process.

    `logged` is the record of that job, which Snakemake deletes before it runs the job, and then asks again. The
    number is that of the record as long as the store holds the run that was written last, deleted or not, so that the
    job does not run again; and a higher one if the store was deleted, or replaced by an older copy.
    """
    try:
        record = door.decode(door.read_json(logged), LoggedCampaign, str(logged))
    except WarplogError:
        return Destination(store=shown(uri), attempt=1)
    lost = record.uri == shown(uri) and not _holds(uri, record.last, logged.parent)
    return Destination(store=shown(uri), attempt=record.attempt + lost)


def _holds(uri: str, run: str, records: Path) -> bool:
    """Returns whether the store has the run; True if it does not answer.

    A database that nobody changed since the last `records` were written is not asked: importing MLflow takes seconds.
    """
    file = sqlite_file(uri)
    if file is not None:
        if not file.is_file() or not file.stat().st_size:
            return False
        if file.stat().st_mtime_ns < max(one.stat().st_mtime_ns for one in records.glob("*.json")):
            return True
    try:
        with connection.connect(uri, write=False) as link:
            return _found(link, run)
    except (WarplogError, OSError):
        return True


def _found(link: connection.Connection, run: str) -> bool:
    from mlflow.exceptions import MlflowException

    try:
        link.client.get_run(run)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        return False
    return True
