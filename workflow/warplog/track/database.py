"""The file of an SQLite store: created whole, used by one writer at a time, repaired after an interrupted migration."""

import contextlib
import errno
import functools
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warplog.core.errors import WarplogError
from warplog.core.locks import PATIENCE_S, holder, locked
from warplog.core.process import processes_with

FAMILY = "warplog.family"
ARTIFACTS = "mlartifacts"
_JOURNALS = ("-journal", "-wal", "-shm")
_NO_LOCK = (errno.ENOENT, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)  # of /proc, and of some file systems
_BUSY_S = 10.0  # longest wait for a process that holds the database itself


@contextlib.contextmanager
def hold(file: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Holds the lock beside the database, so that one process at a time creates or changes the store.

    Raises:
        WarplogError: another process held it for all of `patience_s` seconds, or the folder cannot hold a lock.
        OSError: the lock file cannot be created, for want of space or permission.
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
            if error.errno not in _NO_LOCK:
                raise
            raise WarplogError(
                f"{path}: cannot be locked ({error.strerror}); keep the store in another folder"
            ) from None
        yield


def prepare(file: Path) -> None:
    """Creates the database, or repairs one that an interrupted migration left; call while holding the lock.

    The schema is written to a file beside it, which is renamed when it is complete, so that an interruption leaves
    either no store or a whole one.

    Raises:
        WarplogError: another process is creating or upgrading it, or an older MLflow made it.
        sqlite3.Error: it is locked, read-only or no database.
    """
    if not file.is_file() or not file.stat().st_size:
        _put(_create(_beside(file, "new")), file)
        return
    with _opened(file) as sql:
        sql.execute("begin immediate")  # fails here, not halfway, if it is locked or read-only
        sql.rollback()
        whole = _is_whole(sql)
    if not whole:
        _repair(file)


def follow_the_move(file: Path) -> None:
    """Updates the absolute artifact paths of warplog's experiments after the project folder has moved."""
    # MLflow stores absolute paths, even for a relative artifact location, and has no call to change one
    # (github.com/mlflow/mlflow/issues/3719, open). The public alternative, a new experiment under the same
    # name, would leave the runs of earlier campaigns behind. Hence SQL on three tables of MLflow's schema, only for
    # an SQLite file and only for experiments with warplog's tag; a test moves a project and reads its files.
    with _opened(file) as sql, sql:
        logged = sql.execute(
            "select e.experiment_id, e.artifact_location from experiments e join experiment_tags t"
            " on t.experiment_id = e.experiment_id where t.key = ?",
            (FAMILY,),
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


def _opened(file: Path) -> contextlib.closing[sqlite3.Connection]:
    return contextlib.closing(sqlite3.connect(file, timeout=_BUSY_S))


def _beside(file: Path, word: str) -> Path:
    """Returns the name of a temporary database beside `file`; removes what an interrupted process left there."""
    place = file.with_name(f".{file.name}.{word}")
    place.unlink(missing_ok=True)
    _drop_journals(place)
    return place


def _put(new: Path, file: Path) -> None:
    """Renames `new` to `file`; SQLite would apply a journal that an interrupted process left to the new file."""
    _drop_journals(file)
    new.replace(file)


def _drop_journals(file: Path) -> None:
    for suffix in _JOURNALS:
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def _create(file: Path) -> Path:
    """Writes an empty store of this MLflow version to `file`, which does not exist; returns `file`."""
    with contextlib.closing(sqlite3.connect(file)) as sql:
        _pattern().backup(sql)
    return file


@functools.cache
def _pattern() -> sqlite3.Connection:
    """Returns an empty store in memory: in a file, each of MLflow's hundreds of migration steps waits for the disk."""
    import sqlalchemy
    from mlflow.store.db import utils

    engine = sqlalchemy.create_engine("sqlite://")
    try:
        # MLflow has no public call that creates the tables of a database; it does this itself when it opens a store.
        utils._initialize_tables(engine)
        pattern = sqlite3.connect(":memory:", check_same_thread=False)
        with contextlib.closing(engine.raw_connection()) as made:
            made.driver_connection.backup(pattern)
    finally:
        engine.dispose()
    return pattern


def _upgrade(file: Path) -> Path:
    """Adds what a database lacks of the tables of this MLflow version; returns `file`."""
    import sqlalchemy
    from mlflow.store.db import utils

    engine = sqlalchemy.create_engine(f"sqlite:///{file}")
    try:
        utils._initialize_tables(engine)
    finally:
        engine.dispose()
    return file


def _is_whole(sql: sqlite3.Connection) -> bool:
    """Returns whether the database has the schema of this MLflow version."""
    tables = _tables(sql)
    if "alembic_version" not in tables or any(name.startswith("_alembic_tmp_") for name in tables):
        return False
    versions = [row[0] for row in sql.execute("select version_num from alembic_version")]
    return versions == [_newest()] or not _knows(versions)


@functools.cache
def _newest() -> str:
    """Returns the schema version of this MLflow, which reads all its migrations to find it."""
    from mlflow.store.db import utils

    return str(utils._get_latest_schema_revision())


def _knows(versions: list[str]) -> bool:
    """Returns whether all versions are of this MLflow or an older one; MLflow itself refuses newer ones."""
    from alembic.script import ScriptDirectory
    from mlflow.store.db import utils

    script = ScriptDirectory.from_config(utils._get_alembic_config(""))
    return set(versions) <= {one.revision for one in script.walk_revisions()}


def _repair(file: Path) -> None:
    """Completes a database that an interrupted migration left, with all its rows."""
    if owners := processes_with(file):
        raise WarplogError(
            f"sqlite:///{file}: process {owners[0]} is creating or upgrading the store; wait until it is done, then"
            " run again"
        )
    with _opened(file) as sql:
        runs = sql.execute("select count(*) from runs").fetchone()[0] if "runs" in _tables(sql) else 0
        copy = _beside(file, "copy")
        with contextlib.closing(sqlite3.connect(copy)) as target:
            sql.backup(target)
    try:
        upgraded = _upgrade(copy)
    except Exception as error:
        if not isinstance(error, _upgrade_errors()):
            raise
        _beside(file, "copy")
        upgraded = _rebuilt(file)
    else:
        if runs:
            upgraded.unlink()
            raise WarplogError(
                f"sqlite:///{file}: was made by an older MLflow; copy it, then run `mlflow db upgrade"
                f" sqlite:///{file}`, or use another store"
            )
    kept = file.with_name(f"{file.name}.unfinished")
    if runs:
        kept.unlink(missing_ok=True)
        kept.hardlink_to(file)
    _put(upgraded, file)
    what = (
        f"rebuilt with its {runs} runs; the former file is {kept.name}"
        if runs
        else "made again; it held no runs"
    )
    print(
        f"{file}: an interrupted migration had left it unfinished; {what}",
        file=sys.stderr,
        flush=True,
    )


def _upgrade_errors() -> tuple[type[Exception], ...]:
    import sqlalchemy.exc
    from alembic.util import CommandError

    return sqlalchemy.exc.SQLAlchemyError, sqlite3.Error, CommandError


def _rebuilt(file: Path) -> Path:
    """Returns a new database beside `file` with all rows of its tables."""
    new = _create(_beside(file, "new"))
    with contextlib.closing(sqlite3.connect(new)) as sql, sql:
        sql.execute("attach ? as old", (str(file),))
        there = {row[0] for row in sql.execute("select name from old.sqlite_master where type = 'table'")}
        for table in sorted(_tables(sql) - {"alembic_version"}):
            source = next((name for name in (table, f"_alembic_tmp_{table}") if name in there), "")
            if source:
                _copy_rows(sql, table, source)
    return new


def _copy_rows(sql: sqlite3.Connection, table: str, source: str) -> None:
    """Copies the rows of `old.source` to `table`; a new column that must have a value gets 0 or ''."""
    had = {row[1] for row in sql.execute(f'pragma old.table_info("{source}")')}
    values: dict[str, str] = {}
    for _, name, kind, required, default, _ in sql.execute(f'pragma main.table_info("{table}")'):
        if name in had:
            values[name] = f'"{name}"'
        elif required and default is None:
            values[name] = "''" if "CHAR" in kind.upper() or "TEXT" in kind.upper() else "0"
    names = ", ".join(f'"{name}"' for name in values)
    # Names are those of MLflow's own tables and columns.
    sql.execute(
        f'insert or replace into main."{table}" ({names}) select {", ".join(values.values())} from old."{source}"'  # noqa: S608
    )


def _tables(sql: Any) -> set[str]:
    return {str(row[0]) for row in sql.execute("select name from main.sqlite_master where type = 'table'")}
