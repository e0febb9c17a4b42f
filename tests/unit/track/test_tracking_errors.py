"""Errors of a store: one line with cause and remedy, without a password."""

import contextlib
import http.server
import socket
import sqlite3
import sys
import threading
from typing import Any

import pytest
import sqlalchemy
from track_tables import CAMPAIGN
from tracked_project import Project

from warplog.core.errors import WarplogError
from warplog.plan.making import make_plan
from warplog.track import address, causes, database, log


def error_of(project: Project, uri: str) -> str:
    """Returns the error of logging to `uri`."""
    with pytest.raises(WarplogError) as raised:
        log.log_campaign(project.tables, CAMPAIGN, {}, uri)
    text = str(raised.value)
    assert "\n" not in text
    assert "s3cret" not in text
    return text


@contextlib.contextmanager
def server(status: int, body: bytes):
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
    assert "locked by another process; stop it or wait until it is done, then run again" in text
    assert project.logs() == {}


def test_a_full_disk_is_one_line_and_the_next_run_goes_on(project, capfd):
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    def fill(connection: Any, _: object) -> None:
        connection.execute("pragma max_page_count = 1")

    project.slower()
    sqlalchemy.event.listen(sqlalchemy.engine.Engine, "connect", fill)
    try:
        text = error_of(project, project.uri)
    finally:
        sqlalchemy.event.remove(sqlalchemy.engine.Engine, "connect", fill)
        for engine in SqlAlchemyStore._engine_map.values():
            engine.dispose()  # connections with the pragma
    assert "database or disk is full" in text
    assert "remove the cause or use another store, then run again; all results are kept on disk" in text
    assert "Traceback" not in capfd.readouterr().err
    assert "naive" in project.logs()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"this is no database, and it is longer than a header\n" * 10, "file is not a database"),
        (None, "of another MLflow version or incomplete; copy it and run `mlflow db upgrade sqlite:"),
    ],
)
def test_a_file_that_is_no_store_is_named_with_what_to_do(project, tmp_path, content, said):
    file = tmp_path / "other.db"
    if content:
        file.write_bytes(content)
    else:
        with contextlib.closing(sqlite3.connect(file)) as sql:
            sql.execute("create table runs (run_uuid text)")
    text = error_of(project, f"sqlite:///{file}")
    assert said in text
    assert str(file) in text
    assert "use another store" in text


def test_a_file_in_the_way_is_named(project, tmp_path):
    (tmp_path / "file").write_text("")
    assert f"{tmp_path}/file/mlflow.db.lock: cannot be locked" in error_of(
        project, f"sqlite:///{tmp_path}/file/mlflow.db"
    )


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, "no", "the login was refused; set user name and password in MLFLOW_TRACKING_USERNAME"),
        (401, '{"error_code": "UNAUTHENTICATED", "message": "me"}', "the login was refused; set user name"),
        (403, "no", "this user may not write there"),
        (403, '{"error_code": "PERMISSION_DENIED", "message": "no"}', "ask for the permission"),
        (404, "no", "error code 404"),
        (500, "no", "500 error"),
        (404, '{"detail": "no s3cret"}', "MLflow failed"),
    ],
)
def test_a_server_that_refuses_is_not_said_to_be_down(project, status, body, said):
    with server(status, body.encode()) as host:
        text = error_of(project, f"http://me:s3cret@{host}")
    assert text.startswith(f"http://{host}: ")
    assert said in text
    assert "start the server" not in text


@pytest.mark.timeout(60)
def test_a_dead_or_silent_server_does_not_answer(project, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        text = error_of(project, f"http://me:s3cret@127.0.0.1:{taken.getsockname()[1]}")
    assert "does not answer; check the address and start the server, or unset MLFLOW_TRACKING_URI" in text
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert "does not answer; check" in error_of(project, f"http://127.0.0.1:{silent.getsockname()[1]}")


def test_a_missing_driver_is_named(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    assert "psycopg2" in error_of(project, "postgresql://me:s3cret@localhost/runs")


@pytest.mark.parametrize(
    ("uri", "remedy"),
    [
        ("localhost:5000", "the address has no scheme; write http://localhost:5000"),
        ("me:s3cret@localhost:5000", "the address has no scheme"),
        ("http://me:s3cret/x@localhost:5000", "write special characters of a password as %XX"),
        ("file:/tmp/mlruns", "use sqlite:///FILE"),
        ("mlruns", "use sqlite:///FILE"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_with_one_that_can(project, uri, remedy):
    assert remedy in error_of(project, uri)


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ('FATAL:  password authentication failed for user "me"', "set user name and password"),
        ("connection to server failed: Connection refused", "start the server"),
        ("connection to server failed: timeout expired", "does not answer; check the address"),
        ("database is locked", "stop it or wait"),
        ("Detected out-of-date database schema (found version a)", "mlflow db upgrade postgresql://h/runs"),
        ("Can't locate revision identified by 'abc'", "of another MLflow version"),
    ],
)
def test_what_a_database_says_is_explained(words, remedy):
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
