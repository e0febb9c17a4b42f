"""The file of an SQLite store: created whole, used by one writer at a time, moved with its project."""

import contextlib
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.core.locks import PATIENCE_S, holder, locked
from warplog.track import versions

ARTIFACTS = "mlartifacts"
_BUSY_S = 10.0  # longest wait for a process that holds the database itself


@contextlib.contextmanager
def hold(file: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Holds the lock beside the database, so that one process at a time creates or changes the store.

    Raises:
        WarplogError: another process held it for all of `patience_s` seconds, or the folder cannot hold a lock.
    """
    path = file.with_name(f"{file.name}.lock")
    with contextlib.ExitStack() as held:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(
                locked(path, f"waiting for {file}: another process is logging to it", patience_s)
            )
        except TimeoutError:
            raise WarplogError(
                f"{path}: held by another process{holder(path)} for {patience_s:.0f} s; stop it, then run again"
            ) from None
        except OSError as error:
            raise WarplogError(
                f"{path}: cannot be locked ({error.strerror}); remove the cause, or keep the store in another folder"
            ) from None
        yield


def create(file: Path) -> None:
    """Creates the database unless it is there; call while holding the lock.

    MLflow makes its tables in hundreds of steps; a store that was killed among them, it neither opens nor upgrades.
    So it makes them in a file beside it, which is renamed when it is complete.
    """
    from mlflow import MlflowClient

    if file.is_file() and file.stat().st_size:
        return
    for left in (*file.parent.glob(f".{file.name}.new*"), file.with_name(f"{file.name}-journal")):
        left.unlink(missing_ok=True)
    # Of a new name, since MLflow keeps the connections of a process to a name.
    new = f"{file.parent}/.{file.name}.new-{secrets.token_hex(4)}"
    MlflowClient(f"sqlite:///{new}", f"sqlite:///{new}").search_experiments(max_results=1)
    Path(new).replace(file)


def follow_the_move(file: Path) -> None:
    """Updates the absolute artifact paths of warplog's experiments after the project folder has moved.

    Raises:
        sqlite3.Error: the database is locked, read-only or no store of MLflow.
    """
    # MLflow stores absolute paths, even for a relative artifact location, and has no call to change one
    # (github.com/mlflow/mlflow/issues/3719, open). The public alternative, a new experiment under the same
    # name, would leave the runs of earlier campaigns behind. Hence SQL on three tables of MLflow's schema, only for
    # an SQLite file and only for experiments with warplog's tag; a test moves a project and reads its files.
    with contextlib.closing(sqlite3.connect(file, timeout=_BUSY_S)) as sql, sql:
        sql.execute("begin immediate")  # if it is locked, MLflow would try again for minutes
        logged = sql.execute(
            "select e.experiment_id, e.artifact_location from experiments e join experiment_tags t"
            " on t.experiment_id = e.experiment_id where t.key = ?",
            (versions.FAMILY,),
        ).fetchall()
        for experiment, old in logged:
            new = str(file.parent / ARTIFACTS / Path(str(old)).name)
            if Path(str(old)).parent.name == ARTIFACTS and old != new:
                sql.execute(
                    "update experiments set artifact_location = ? where experiment_id = ?", (new, experiment)
                )
                sql.execute(
                    "update runs set artifact_uri = ? || substr(artifact_uri, ?) where experiment_id = ?"
                    " and substr(artifact_uri, 1, ?) = ?",
                    (new, len(old) + 1, experiment, len(old) + 1, f"{old}/"),
                )
