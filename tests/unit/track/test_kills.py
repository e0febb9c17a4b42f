"""Logging is killed before each call that writes; the same command again completes it, and doubles nothing.

A kill before a call of MLflow's client that only reads leaves what one before the next call that writes does. Of equal
calls in a row, such as those for several variants, the kill is before the last: some are done and some are not.
"""

import shutil
import socket
import sqlite3
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from killed import Killed, context, serve_mlflow
from msgspec import structs
from track_tables import CAMPAIGN, write_tables
from tracked_project import Project

from warplog.track import database

VARIANTS = ("cublas", "naive")
READING = ("get_", "search_")
OWN = ("warplog.logged_at", "warplog.writer", "warplog.fingerprint", "warplog.version")


@pytest.fixture(scope="module")
def killer() -> Iterator[Killed]:
    process = Killed()
    yield process
    process.end()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """An MLflow server with its own database and artifacts."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    running = context().Process(target=serve_mlflow, args=(port, tmp_path), daemon=True)
    running.start()
    try:
        address = f"http://127.0.0.1:{port}"
        while running.is_alive():
            try:
                urllib.request.urlopen(f"{address}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield address
    finally:
        running.kill()
        running.join()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with two variants in two cases, not logged yet."""
    project = Project(tmp_path).make()
    project.only(*VARIANTS)
    project.edit("measurements", lambda rows: rows[rows["case"].isin(["1024", "4096"])])
    return project


def content(project: Project, artifacts: Path, campaign: str = CAMPAIGN.campaign) -> dict[str, Any]:
    """Returns all that the current runs of a campaign hold, by variant; their files are in a folder of artifacts."""
    found: dict[str, Any] = {}
    for run in project.of(campaign):
        tags = {name: value for name, value in run.data.tags.items() if name not in OWN}
        assert tags["variant"] not in found, f"{tags['variant']} is doubled"
        (place,) = artifacts.glob(f"*/{run.info.run_id}/artifacts")
        files = {str(p.relative_to(place)): p.stat().st_size for p in place.rglob("*") if p.is_file()}
        about = run.info.status, run.info.start_time, run.info.end_time
        found[tags["variant"]] = about, tags, run.data.params, run.data.metrics, files
    return found


def states(project: Project, campaign: str = CAMPAIGN.campaign) -> set[tuple[str, str]]:
    runs = [run for run in project.stored() if run.data.tags["campaign"] == campaign]
    return {(run.data.tags["warplog.state"], run.info.status) for run in runs}


def restore(file: Path, kept: Path) -> None:
    """Gives a database, which a process has open, the content that a copy of it has."""
    with closing(sqlite3.connect(kept)) as before, closing(sqlite3.connect(file)) as now:
        before.backup(now)


def points(calls: list[str]) -> list[int]:
    """Returns the numbers, from 1, of the calls that write the last of equal ones in a row."""
    assert sum(not name.startswith(READING) for name in calls) > 5 * len(VARIANTS)
    following = zip_longest(calls, calls[1:])
    return [
        number
        for number, (name, after) in enumerate(following, 1)
        if name != after and not name.startswith(READING)
    ]


ENDED = {("current", "FINISHED"), ("superseded", "FINISHED"), ("interrupted", "KILLED")}


def test_killed_before_any_call_in_a_new_store_it_is_completed_by_the_next_run(project, killer):
    empty, first, file = (project.root / f"{name}.db" for name in ("empty", "undisturbed", "killed"))
    database.create(empty)
    shutil.copy(empty, first)
    shutil.copy(empty, file)
    artifacts = project.root / database.ARTIFACTS
    undisturbed, store = (Project(project.root, f"sqlite:///{place}") for place in (first, file))
    calls = killer.log(undisturbed)
    wanted = content(undisturbed, artifacts)
    assert set(wanted) == set(VARIANTS)
    for number in points(calls):
        restore(file, empty)
        killer.log(store, kill=number)
        store.log()
        assert content(store, artifacts) == wanted, f"killed before call {number} of {calls}"
        assert states(store) <= ENDED - {("superseded", "FINISHED")}


@pytest.mark.timeout(600)
def test_killed_before_any_call_on_a_server_new_versions_are_completed_by_the_next_run(
    project, killer, server, tmp_path
):
    project = Project(project.root, server)
    stored, artifacts = Project(project.root, f"sqlite:///{tmp_path}/server.db"), tmp_path / "artifacts"
    write_tables(project.tables, campaign="earlier")
    project.only(*VARIANTS)
    project.log(structs.replace(CAMPAIGN, campaign="earlier"))
    earlier = content(stored, artifacts, "earlier")
    write_tables(project.tables)
    project.only(*VARIANTS)
    project.log()
    first = content(stored, artifacts)
    assert set(first) == set(earlier) == set(VARIANTS)
    restore(tmp_path / "before.db", tmp_path / "server.db")
    project.slower()
    calls = killer.log(project)
    wanted = content(stored, artifacts)
    metrics = {variant: wanted[variant][3]["time/hot_us"] for variant in VARIANTS}
    assert metrics == {variant: 2 * first[variant][3]["time/hot_us"] for variant in VARIANTS}
    for number in points(calls):
        restore(tmp_path / "server.db", tmp_path / "before.db")
        killer.log(project, kill=number)
        project.log()
        assert content(stored, artifacts) == wanted, f"killed before call {number} of {calls}"
        assert states(stored) <= ENDED
        assert content(stored, artifacts, "earlier") == earlier
