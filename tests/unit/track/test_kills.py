"""Logging is killed before each call of MLflow's client; the same command again completes it, and doubles nothing."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import killed
import pytest
from msgspec import structs
from track_tables import CAMPAIGN, write_tables
from tracked_project import Project

VARIANTS = ("cublas", "naive")
# Tags that name the campaign, or depend on its name, or say when it was logged and by whom.
VOLATILE = (
    "campaign",
    "campaign_id",
    "mlflow.note.content",
    "warplog.fingerprint",
    "warplog.key",
    "warplog.logged_at",
    "warplog.writer",
)


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    return killed.context()


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/results/mlflow.db"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """An MLflow server with its own database and artifacts."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{tmp_path}/server.db"]
    command += ["--artifacts-destination", f"{tmp_path}/artifacts"]
    quiet = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with (tmp_path / "server.log").open("w") as said:
        running = subprocess.Popen(
            command, env=os.environ | quiet, stdout=said, stderr=said, start_new_session=True
        )
        try:
            address = f"http://127.0.0.1:{port}"
            while running.poll() is None:
                try:
                    urllib.request.urlopen(f"{address}/health", timeout=5).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield address
        finally:
            os.killpg(running.pid, 9)
            running.wait()


def small(root: Path, uri: str, campaign: str) -> Project:
    """Returns a project with the tables of two variants in two cases, as a campaign of this name."""
    project = Project(root, uri)
    if not (root / "files").exists():
        project.make()
    write_tables(project.tables, campaign=campaign)
    project.only(*VARIANTS)
    project.edit("measurements", lambda rows: rows[rows["case"].isin(["1024", "4096"])])
    return project


def content(project: Project, campaign: str) -> dict[str, Any]:
    """Returns all that the campaign's runs hold, by variant and state; of interrupted ones nothing."""
    found: dict[str, Any] = {}
    for run in project.stored():
        tags = dict(run.data.tags)
        if tags["campaign"] != campaign or tags["warplog.state"] == "interrupted":
            continue
        key = f"{tags['variant']} {tags['warplog.state']}"
        assert key not in found, f"{key} is doubled"
        kept = {name: value for name, value in tags.items() if name not in VOLATILE}
        about = run.info.status, run.info.start_time, run.info.end_time
        values = run.data.params, run.data.metrics, project.files_of(run.info.run_id)
        found[key] = json.dumps([about, kept, values], sort_keys=True)
    return found


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", ["sqlite", "server"])
def test_killed_before_any_call_it_is_completed_by_the_next_run(kind, request, processes, tmp_path):
    uri = request.getfixturevalue(kind)
    project = small(tmp_path, uri, "undisturbed")
    killed.log(processes, tmp_path, uri, "undisturbed")
    small(tmp_path, uri, "again")
    calls = killed.log(processes, tmp_path, uri, "again")
    wanted = content(project, "undisturbed")
    assert set(wanted) == {f"{variant} current" for variant in VARIANTS}
    assert content(project, "again") == wanted
    print(kind, calls)
    for number in range(1, calls + 1):
        name = f"killed-{number}"
        small(tmp_path, uri, name)
        killed.log(processes, tmp_path, uri, name, kill=number)
        project.log(structs.replace(CAMPAIGN, campaign=name))
        assert content(project, name) == wanted, f"killed before call {number} of {calls}"
    assert not [run for run in project.stored() if run.info.status == "RUNNING"]
    assert content(project, "undisturbed") == wanted
