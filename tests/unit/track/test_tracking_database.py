"""The file of an SQLite store: it appears whole, an interrupted one is repaired with its runs, one process writes."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy
from track_tables import LADDER
from tracked_project import Project, moved

import snakemake_runs
from warplog.core.errors import WarplogError
from warplog.track import connection, database

TESTS = Path(__file__).parents[2]
EARLIER = "cbc13b556ace"  # a schema version of MLflow after which columns were added


@pytest.fixture
def project(template: Project, tmp_path: Path) -> Project:
    """A logged project to change."""
    return moved(template, tmp_path / "moved here")


def store_of(project: Project) -> Path:
    return project.root / "results" / "mlflow.db"


def execute(file: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(file)) as sql, sql:
        sql.execute(statement)


@contextlib.contextmanager
def interrupted_after(statements: int):
    """Raises KeyboardInterrupt in the process that executes SQL, after that many statements."""
    left = [statements]

    def count(*_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    sqlalchemy.event.listen(sqlalchemy.engine.Engine, "after_cursor_execute", count)
    try:
        yield
    finally:
        sqlalchemy.event.remove(sqlalchemy.engine.Engine, "after_cursor_execute", count)


def migrate(file: Path) -> None:
    """Creates the tables in the file itself, as MLflow does."""
    from mlflow.store.db import utils  # not while tests are collected: its telemetry would be on

    engine = sqlalchemy.create_engine(f"sqlite:///{file}")
    try:
        utils._initialize_tables(engine)
    finally:
        engine.dispose()


def test_a_store_whose_creation_was_interrupted_does_not_exist(tmp_path):
    file = tmp_path / "mlflow.db"
    database._pattern.cache_clear()  # so that its tables are created here
    with interrupted_after(60), pytest.raises(KeyboardInterrupt):
        database.prepare(file)
    assert not file.exists()
    (tmp_path / "mlflow.db-journal").write_bytes(b"of another database")
    database.prepare(file)
    assert [path.name for path in tmp_path.iterdir()] == ["mlflow.db"]
    with connection.connect(f"sqlite:///{file}") as link:
        assert link.client.search_experiments()


def test_a_store_that_an_older_version_left_unfinished_is_made_again(tmp_path, capsys):
    file = tmp_path / "mlflow.db"
    with interrupted_after(60), pytest.raises(KeyboardInterrupt):
        migrate(file)
    assert file.stat().st_size
    capsys.readouterr()  # what MLflow reports
    with connection.connect(f"sqlite:///{file}") as link:
        assert link.client.search_experiments()
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"{file}: an interrupted migration had left it unfinished; made again; it held no runs"


def test_an_unfinished_store_with_runs_is_rebuilt_with_them(project, capsys):
    file, before = store_of(project), {r.info.run_id: r.data for r in project.stored()}
    metrics = {run_id: data.metrics for run_id, data in before.items()}
    copy = project.root / "results" / "again.db"
    shutil.copy(file, copy)
    execute(copy, f"update alembic_version set version_num = '{EARLIER}'")
    with connection.connect(f"sqlite:///{copy}") as link:
        runs = link.client.search_runs([project.experiment().experiment_id], max_results=1000)
    assert {run.info.run_id: run.data.metrics for run in runs} == metrics
    (line,) = capsys.readouterr().err.splitlines()
    assert "rebuilt with its 8 runs; the former file is again.db.unfinished" in line
    assert copy.with_name("again.db.unfinished").is_file()


def test_a_store_that_another_process_is_migrating_is_left_alone(tmp_path):
    file = tmp_path / "mlflow.db"
    with interrupted_after(60), pytest.raises(KeyboardInterrupt):
        migrate(file)
    opened = f"import sqlite3, sys; s = sqlite3.connect({str(file)!r}); s.execute('select * from runs')"
    wait = "print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", f"{opened}; {wait}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline()
        with pytest.raises(
            WarplogError, match=rf"process {other.pid} is creating or upgrading.*; wait until"
        ):
            database.prepare(file)
    database.prepare(file)  # the remedy
    with connection.connect(f"sqlite:///{file}") as link:
        assert link.client.search_experiments()


LOG = """
import sys
sys.path[:0] = {folders!r}
from pathlib import Path
from tracked_project import Project
Project(Path({root!r})).log()
"""


def test_two_processes_that_log_to_a_new_store_log_each_run_once(tmp_path):
    project = Project(tmp_path / "shared").make()
    folders = [
        str(TESTS.parent / "workflow"),
        str(TESTS / "support"),
        str(TESTS / "support" / "made_up"),
        str(TESTS / "unit" / "track"),
    ]
    script = tmp_path / "log.py"
    script.write_text(LOG.format(folders=folders, root=str(project.root)))
    environment = {**os.environ, "DO_NOT_TRACK": "true"}
    run = partial(snakemake_runs.run_program, str(script), tmp_path, environment=environment)
    with ThreadPoolExecutor(2) as both:
        done = [one.result() for one in [both.submit(run), both.submit(run)]]
    assert [one.returncode for one in done] == [0, 0], done[0].stderr + done[1].stderr
    assert Counter(run.data.params["variant"] for run in project.stored()) == dict.fromkeys(LADDER, 1)
    assert len(project.current()) == len(LADDER)


def test_a_second_writer_waits_for_the_lock_and_says_so(tmp_path, capsys):
    file = tmp_path / "mlflow.db"
    refused = pytest.raises(WarplogError, match=r"mlflow\.db\.lock: held by another process \(process \d+ on")
    with database.hold(file), refused, database.hold(file, patience_s=0):
        pass
    assert f"another process is logging to it (process {os.getpid()} on " in capsys.readouterr().err


def test_a_store_in_a_folder_that_holds_no_lock_is_refused_at_once():
    with (
        pytest.raises(
            WarplogError, match=r"^/proc/x\.db\.lock: cannot be locked .*; keep the store in another"
        ),
        connection.connect("sqlite:////proc/x.db"),
    ):
        pass
