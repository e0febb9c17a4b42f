"""Logging is killed before each call of MLflow's client; the same command again completes it, and doubles nothing."""

import os
import shutil
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
import pandas as pd
import pytest
from msgspec import structs
from track_tables import CAMPAIGN, write_tables
from tracked_project import Project

from warplog.track import database

VARIANTS = ("cublas", "naive")
CHANGED = ("time/hot_us", "headline/hot_us")  # metrics that differ between the versions of a run
OWN = ("warplog.logged_at", "warplog.writer", "warplog.fingerprint", "warplog.version")


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    return killed.context()


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


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with two variants in two cases, not logged yet."""
    project = Project(tmp_path).make()
    project.only(*VARIANTS)
    project.edit("measurements", lambda rows: rows[rows["case"].isin(["1024", "4096"])])
    return project


def content(project: Project, campaign: str = CAMPAIGN.campaign) -> dict[str, Any]:
    """Returns all that the current runs of a campaign hold, by variant."""
    found: dict[str, Any] = {}
    for run in project.of(campaign):
        tags = {name: value for name, value in run.data.tags.items() if name not in OWN}
        metrics = {name: value for name, value in run.data.metrics.items() if name not in CHANGED}
        assert tags["variant"] not in found, f"{tags['variant']} is doubled"
        about = run.info.status, run.info.start_time, run.info.end_time
        found[tags["variant"]] = about, tags, run.data.params, metrics, project.files_of(run.info.run_id)
    return found


def states(project: Project, campaign: str = CAMPAIGN.campaign) -> set[tuple[str, str]]:
    runs = [run for run in project.stored() if run.data.tags["campaign"] == campaign]
    return {(run.data.tags["warplog.state"], run.info.status) for run in runs}


ENDED = {("current", "FINISHED"), ("superseded", "FINISHED"), ("interrupted", "KILLED")}


@pytest.mark.timeout(1200)
def test_killed_before_any_call_in_a_new_store_it_is_completed_by_the_next_run(project, processes):
    empty = project.root / "empty.db"
    database.create(empty)

    def fresh(number: int) -> Project:
        store = project.root / f"{number}.db"
        shutil.copy(empty, store)
        return Project(project.root, f"sqlite:///{store}")

    undisturbed = fresh(0)
    calls = killed.log(processes, undisturbed)
    wanted = content(undisturbed)
    assert set(wanted) == set(VARIANTS)
    assert calls > 5 * len(VARIANTS)
    for number in range(1, calls + 1):
        store = fresh(number)
        killed.log(processes, store, kill=number)
        store.log()
        assert content(store) == wanted, f"killed before call {number} of {calls}"
        assert states(store) <= ENDED


@pytest.mark.timeout(1200)
def test_killed_before_any_call_on_a_server_new_versions_are_completed_by_the_next_run(
    project, processes, server
):
    project = Project(project.root, server)
    write_tables(project.tables, campaign="earlier")
    project.only(*VARIANTS)
    project.log(structs.replace(CAMPAIGN, campaign="earlier"))
    earlier = content(project, "earlier")
    write_tables(project.tables)
    project.only(*VARIANTS)
    project.log()
    wanted = content(project)
    assert set(wanted) == set(earlier) == set(VARIANTS)
    project.slower()
    calls = killed.log(processes, project)
    assert calls > 5 * len(VARIANTS)
    for number in range(1, calls + 1):
        project.slower()
        killed.log(processes, project, kill=number)
        project.log()
        assert content(project) == wanted, f"killed before call {number} of {calls}"
        assert states(project) <= ENDED
        for variant in VARIANTS:
            (run,) = (run for run in project.of(CAMPAIGN.campaign) if run.data.params["variant"] == variant)
            rows = pd.read_parquet(project.tables / "measurements.parquet").set_index(["variant", "case"])
            assert run.data.metrics["time/hot_us"] == rows.loc[(variant, "4096"), "hot_us"], "of this version"
    assert content(project, "earlier") == earlier
