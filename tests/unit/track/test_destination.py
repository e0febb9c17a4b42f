"""The store is part of the state: planning notices another, wiped or restored store, and deleted runs."""

import http.server
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest
from tracked_project import Project, moved

from warplog.plan.making import make_plan
from warplog.records import door
from warplog.track import links, log, presence
from warplog.track.view import CHARTS

WORKFLOW = Path(__file__).parents[3] / "workflow"


@pytest.fixture
def project(template: Project, tmp_path: Path) -> Project:
    """A logged project to change."""
    return moved(template, tmp_path / "moved here")


def logged(project: Project, attempt: int = 1) -> Path:
    """Logs the project as the workflow does; returns the record of the job."""
    record = project.root / "results" / "track" / "mlflow.json"
    door.write(record, project.log().as_record(attempt))
    return record


def attempt(project: Project, record: Path) -> int:
    return int(presence.destination(project.uri, record)["attempt"])


def test_a_store_that_holds_its_runs_is_not_logged_to_again(project):
    record = logged(project)
    assert presence.destination(project.uri, record) == {"store": project.uri, "attempt": 1}
    project.edit("measurements", lambda rows: rows.assign(hot_us=rows["hot_us"] * 2))
    project.log()
    assert attempt(project, record) == 1, "superseded runs are still there"


def test_another_store_is_another_parameter(project):
    record = logged(project)
    here = presence.destination(project.uri, record)
    assert presence.destination("sqlite:///other.db", record) != here
    assert presence.destination("http://host:5000", record)["store"] == "http://host:5000"


def test_a_store_without_record_is_the_first_attempt(project):
    assert attempt(project, project.root / "none.json") == 1


def test_a_deleted_run_is_noticed_and_logged_again(project):
    record = logged(project)
    project.client.delete_run(project.run("naive").info.run_id)
    assert attempt(project, record) == 2
    assert attempt(project, logged(project, 2)) == 2
    assert project.run("naive")


def test_the_decision_stands_after_snakemake_deleted_the_record(project):
    record = logged(project)
    project.client.delete_run(project.run("naive").info.run_id)
    assert presence.decided(project.uri, record)["attempt"] == 2
    record.unlink()
    assert presence.decided(project.uri, record)["attempt"] == 2


def test_a_deleted_experiment_is_noticed(project):
    record = logged(project)
    project.client.delete_experiment(project.experiment().experiment_id)
    assert attempt(project, record) == 2


def test_a_wiped_store_is_noticed(project):
    record = logged(project)
    (project.root / "results" / "mlflow.db").unlink()
    assert attempt(project, record) == 2
    (project.root / "results" / "mlflow.db").write_bytes(b"")
    assert attempt(project, record) == 2
    with closing(sqlite3.connect(project.root / "results" / "mlflow.db")) as sql:
        sql.execute("create table runs (run_uuid text)")
    assert attempt(project, record) == 2


def test_a_store_restored_from_an_earlier_copy_is_noticed(project):
    file = project.root / "results" / "mlflow.db"
    logged(project)
    shutil.copy(file, project.root / "copy.db")
    project.edit("measurements", lambda rows: rows.assign(hot_us=rows["hot_us"] * 2))
    record = logged(project)
    shutil.copy(project.root / "copy.db", file)
    assert attempt(project, record) == 2


def test_a_locked_store_counts_as_unchanged(project, monkeypatch):
    record = logged(project)
    monkeypatch.setattr(presence, "_PATIENCE_S", 0.0)
    with closing(sqlite3.connect(project.root / "results" / "mlflow.db")) as other:
        other.execute("begin exclusive")
        assert attempt(project, record) == 1


class Server(http.server.BaseHTTPRequestHandler):
    """A server that holds the runs in `runs` and requires the login me:s3cret."""

    runs: Mapping[str, str] = {}

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        held = [run for run, view in self.runs.items() if view == asked["run_view_type"]]
        found = [{"info": {"run_id": run}} for run in held if f"'{run}'" in asked["filter"]]
        allowed = self.headers.get("Authorization") == "Basic bWU6czNjcmV0"
        body = json.dumps({"runs": found} if allowed else {"error_code": "UNAUTHENTICATED"}).encode()
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_is_asked_for_the_runs_with_the_login_of_the_address(tmp_path):
    record = tmp_path / "mlflow.json"
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        host = f"127.0.0.1:{running.server_port}"
        uri = f"http://me:s3cret@{host}"
        experiment = {
            "family": "f",
            "experiment_id": "1",
            "link": "",
            "home": "a",
            "runs": {"a": "1f", "b": "2f"},
        }
        kept = {"uri": f"http://{host}", "attempt": 3, "experiments": [experiment], "last": "2f"}
        record.write_text(json.dumps(kept))
        Server.runs = {"1f": "ACTIVE_ONLY", "2f": "ACTIVE_ONLY"}
        assert presence.destination(uri, record) == {"store": f"http://{host}", "attempt": 3}
        Server.runs = {"1f": "DELETED_ONLY", "2f": "ACTIVE_ONLY"}
        assert presence.destination(uri, record)["attempt"] == 4, "a run was deleted"
        Server.runs = {"1f": "ACTIVE_ONLY"}
        assert presence.destination(uri, record)["attempt"] == 4, "an older copy was restored"
        Server.runs = {}
        assert presence.destination(uri, record)["attempt"] == 4, "the server was wiped"
        assert presence.destination(f"http://{host}", record)["attempt"] == 3, "not allowed to look"
        running.shutdown()
    assert presence.destination(uri, record)["attempt"] == 3, "it does not answer"


def test_the_parameter_of_the_job_holds_no_password(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://user:a@s3cret@host:5000/?password=s3cret2")
    plan = make_plan({"mode": "recorded"})
    assert "s3cret" not in json.dumps([plan.destination(None), plan.decisions(), plan.settings.track.uri])


def test_asking_a_store_imports_neither_mlflow_nor_sqlalchemy(project):
    record = logged(project)
    code = (
        "import sys; from pathlib import Path; from warplog.track import presence;"
        f"print(presence.destination({project.uri!r}, Path({str(record)!r}))['attempt']);"
        "print({'mlflow', 'sqlalchemy', 'pandas', 'requests'} & set(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(WORKFLOW)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:2] == ["1", "set()"]


def test_a_hint_names_the_command_that_opens_the_links(project):
    lines: list[str] = []
    log.log_campaign(project.tables, _campaign(), {}, project.uri, lines.append)
    assert lines[-1].endswith("to open the links, run: uv run warplog ui")
    links = [line for line in lines if "/runs/" in line]
    assert links
    assert all(line.endswith("?workflowType=machine_learning") for line in links)


def test_a_page_links_to_each_run_and_to_the_table_and_charts_of_its_family(project):
    done = project.log()
    page = links.page(done, project.uri)
    addresses = [unescape(found) for found in re.findall('href="(.*?)"', page)]
    for family in done.experiments:
        assert {family.link, family.link + CHARTS} <= set(addresses)
        for run in family.runs.values():
            (address,) = (one for one in addresses if run.run_id in one)
            assert address.startswith("http://127.0.0.1:5000/#/experiments/")
            assert address.endswith("?workflowType=machine_learning")
    assert "warplog ui" in page
    assert "warplog ui" not in links.page(done, "http://server:5000")


def _campaign():
    from track_tables import CAMPAIGN

    return CAMPAIGN
