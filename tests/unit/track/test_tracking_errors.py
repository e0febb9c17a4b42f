"""Errors of a store: one line with cause and remedy, without a password; each remedy is tried."""

import contextlib
import http.server
import socket
import sqlite3
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from msgspec import structs
from track_tables import CAMPAIGN
from tracked_project import Project, moved

from warplog.core.errors import WarplogError
from warplog.plan.making import make_plan
from warplog.track import address, causes, database, log


@pytest.fixture
def project(template: Project, tmp_path: Path) -> Project:
    """A logged project to change."""
    return moved(template, tmp_path / "moved here")


def error_of(project: Project, uri: str) -> str:
    """Returns the error of logging to `uri`."""
    with pytest.raises(WarplogError) as raised:
        log.log_campaign(project.tables, CAMPAIGN, {}, uri)
    text = str(raised.value)
    assert "\n" not in text
    return text


@contextlib.contextmanager
def pragma(setting: str):
    """Sets a pragma in each new connection of MLflow to an SQLite database."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    def set_it(connection: Any, _: object) -> None:
        connection.execute(f"pragma {setting}")

    sqlalchemy.event.listen(sqlalchemy.engine.Engine, "connect", set_it)
    try:
        yield
    finally:
        sqlalchemy.event.remove(sqlalchemy.engine.Engine, "connect", set_it)
        for engine in SqlAlchemyStore._engine_map.values():
            engine.dispose()  # connections with the pragma


@contextlib.contextmanager
def server(status: int, body: bytes = b"no"):
    """Yields the address of a server that answers every request with this status."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{running.server_port}"
        running.shutdown()


def test_a_locked_store_is_reported_as_locked_and_works_once_it_is_free(project, monkeypatch):
    monkeypatch.setattr(database, "_BUSY_S", 0.0)
    with contextlib.closing(sqlite3.connect(project.root / "results" / "mlflow.db")) as other:
        other.execute("begin exclusive")
        text = error_of(project, project.uri)
    assert "locked by another process" in text
    assert "stop it or wait until it is done, then run again" in text
    assert "move it away" not in text
    assert project.changes(project.log()) == {}


@pytest.mark.parametrize(
    ("setting", "cause"),
    [("max_page_count = 1", "the disk is full"), ("query_only = 1", "mlflow.db cannot be written")],
)
def test_a_store_that_takes_no_more_is_healthy_and_goes_on_later(project, setting, cause, capfd):
    project.edit("measurements", lambda rows: rows.assign(hot_us=rows["hot_us"] * 2))
    with pragma(setting):
        text = error_of(project, project.uri)
    assert cause in text
    assert "move it away" not in text
    assert "Traceback" not in capfd.readouterr().err
    assert "naive" in project.changes(project.log())


def test_a_file_that_is_no_database_can_be_moved_away(project, tmp_path):
    file = tmp_path / "other.db"
    file.write_text("this is no database, and it is longer than a header\n" * 10)
    assert "not an SQLite database, or damaged; move it away" in error_of(project, f"sqlite:///{file}")
    file.rename(tmp_path / "away")
    assert log.log_campaign(project.tables, CAMPAIGN, {}, f"sqlite:///{file}").experiments


def test_a_file_or_folder_in_the_way_is_named(project, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    assert f"{tmp_path}/file is in the way" in error_of(project, f"sqlite:///{tmp_path}/file/mlflow.db")
    assert f"{tmp_path}/folder is in the way" in error_of(project, f"sqlite:///{tmp_path}/folder")


def test_a_forbidden_file_is_named(project, monkeypatch):
    from mlflow import MlflowClient

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/srv/artifacts/x")

    monkeypatch.setattr(MlflowClient, "log_artifacts", refuse)
    project.edit("measurements", lambda rows: rows.assign(hot_us=rows["hot_us"] * 2))
    assert "/srv/artifacts/x cannot be written; give yourself the permission" in error_of(
        project, project.uri
    )


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (401, "the login was refused; set user name and password in MLFLOW_TRACKING_USERNAME"),
        (403, "this user may not write there"),
        (404, "check that host, port and path are those of an MLflow server"),
        (500, "look at its log"),
    ],
)
def test_a_server_that_refuses_is_not_said_to_be_down(project, status, remedy):
    with server(status) as host:
        text = error_of(project, f"http://me:s3cret@{host}")
    assert text.startswith(f"http://{host}: ")
    assert remedy in text
    assert "start" not in text
    assert "s3cret" not in text


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("status", "body", "remedy"),
    [
        (401, '{"error_code": "UNAUTHENTICATED", "message": "me"}', "the login was refused; set user name"),
        (403, '{"error_code": "PERMISSION_DENIED", "message": "no"}', "ask for the permission"),
        (404, '{"error_code": "ENDPOINT_NOT_FOUND", "message": "no"}', "check that host, port and path"),
        (401, '{"detail": "not you"}', "'not you'}); check the address and the login"),
        (404, '{"detail": "no s3cret"}', "check the address and the login"),
    ],
)
def test_what_a_server_says_in_json_is_explained(project, status, body, remedy):
    with server(status, body.encode()) as host:
        text = error_of(project, f"http://me:s3cret@{host}")
    assert text.startswith(f"http://{host}: ")
    assert remedy in text
    assert "RestException" not in text
    assert "s3cret" not in text


@pytest.mark.timeout(60)
def test_a_dead_server_fails_with_one_line_and_no_password(project):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        text = error_of(project, f"http://me:s3cret@127.0.0.1:{taken.getsockname()[1]}")
    assert "does not answer; start the server, or unset MLFLOW_TRACKING_URI" in text
    assert "s3cret" not in text


@pytest.mark.timeout(60)
def test_a_silent_server_fails_too(project, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        text = error_of(project, f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert "does not answer in time; check the address and the server" in text


def test_a_missing_driver_is_named_with_its_package(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    text = error_of(project, "postgresql://me:s3cret@localhost/runs")
    assert "driver psycopg2 is missing; run `uv pip install 'psycopg2-binary'`" in text
    assert "s3cret" not in text


@pytest.mark.parametrize(
    ("uri", "remedy"),
    [
        ("localhost:5000", "the address has no scheme; write http://localhost:5000"),
        ("me:s3cret@localhost:5000", "the address has no scheme"),
        ("http://me:s3cret/x@localhost:5000", "write special characters of a password as %XX"),
        ("file:/tmp/mlruns", "use sqlite:///FILE"),
        ("mlruns", "use sqlite:///FILE"),
        ("oracle://me:s3cret@host/db", "use sqlite, postgresql, mysql, mssql or an http address"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_with_one_that_can(project, uri, remedy):
    text = error_of(project, uri)
    assert remedy in text
    assert "s3cret" not in text


def test_a_run_that_was_deleted_meanwhile_is_logged_again(project):
    record = project.log().as_record()
    (sgemm,) = (logged for logged in record.experiments if logged.family == "sgemm")
    lost = structs.replace(sgemm, runs={**sgemm.runs, "cublas": "0" * 32})
    figures = {"sgemm": [project.root / "figures" / "ladder.svg"]}
    with pytest.raises(WarplogError, match="was deleted while it was used; run again, and it is logged anew"):
        log.log_figures(structs.replace(record, experiments=(lost,)), figures, project.uri)
    assert project.log()


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ('FATAL:  password authentication failed for user "me"', "correct user name and password"),
        ('FATAL:  database "runs" does not exist', "no such database; create it"),
        ("connection to server failed: Connection refused", "start the server"),
        ("connection to server failed: timeout expired", "does not answer in time"),
        ('could not translate host name "x" to address', "no such host"),
        ('relation "experiments" already exists', "another process is creating or upgrading the store; wait"),
        ("Detected out-of-date database schema (found version a)", "mlflow db upgrade postgresql://h/runs"),
        ("Can't locate revision identified by 'abc'", "made by a newer MLflow"),
    ],
)
def test_what_a_database_server_says_is_explained(words, remedy):
    error = sqlalchemy.exc.OperationalError("select 1", {}, Exception(words))
    text = causes.explain("postgresql://me:s3cret@h/runs", error)
    assert remedy in text
    assert "s3cret" not in text


@pytest.mark.parametrize(
    ("uri", "seen"),
    [
        ("http://me:s3cret@host:5000/mlflow", "http://host:5000/mlflow"),
        ("http://user:a@s3cret@host/x", "http://host/x"),
        ("postgresql+psycopg2://host/db?password=s3cret", "postgresql+psycopg2://host/db"),
        ("postgresql://host/db?password=a@s3cret", "postgresql://…"),
        ("http://user:a/s3cret@host/x", "http://…"),
        ("http://user:1?s3cret@host/x", "http://…"),
        ("http://user:1#s3cret@host/x", "http://…"),
        ("http://[::1]:5000/x", "http://[::1]:5000/x"),
        ("http://me:s3cret@[::1/x", "http://…"),
        ("sqlite:///a@b/mlflow.db?password=s3cret", "sqlite:///a@b/mlflow.db"),
        ("me:s3cret@host", "…"),
        ("databricks://s3cret", "databricks://…"),
        ("databricks", "databricks"),
        ("https://Host/", "https://Host/"),
    ],
)
def test_no_part_of_a_password_is_shown(uri, seen):
    assert address.shown(uri) == seen
    if "s3cret" in uri:
        assert "s3cret" not in causes.explain(uri, ValueError(f"cannot use {uri}, that is s3cret"))


@pytest.mark.parametrize(
    "uri",
    ["http://me:s3cret@host", "postgresql://h/d?password=s3cret", "me:s3cret@h:1", "databricks://s3cret"],
)
def test_a_password_in_the_configuration_is_refused_with_the_place_for_it(uri):
    with pytest.raises(
        WarplogError, match=r"track: uri: .* environment variable MLFLOW_TRACKING_URI"
    ) as raised:
        make_plan({"mode": "recorded", "track": {"uri": uri}})
    assert "s3cret" not in str(raised.value)
