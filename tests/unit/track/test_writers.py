"""A writer that died leaves a run that the next one marks; the run of a writer that lives is left alone."""

import contextlib
import datetime
import subprocess
import sys
from types import SimpleNamespace

import pytest
from track_tables import LADDER
from tracked_project import Project, moved

from warplog.track import connection, database, store, versions, writers
from warplog.track.connection import Connection
from warplog.track.store import Store

# Logs the project as to a server, and stops when the first run has begun.
WRITER = """
import contextlib, sys, time
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from tracked_project import Project
from warplog.track import database
from warplog.track.store import Store
def stop(*arguments):
    print("begun", flush=True)
    time.sleep(600)
Store._log = stop
database.hold = lambda file: contextlib.nullcontext()
Project(Path(sys.argv[1])).log()
"""


@pytest.fixture
def project(template: Project, tmp_path, monkeypatch) -> Project:
    """A logged project, whose store other processes may write to at any time, as on a server."""
    project = moved(template, tmp_path / "moved here")
    monkeypatch.setattr(connection, "Connection", lambda client, place, _: Connection(client, place, False))
    monkeypatch.setattr(database, "hold", lambda file: contextlib.nullcontext())
    return project


def begun(project: Project) -> list[str]:
    return [run.info.run_id for run in project.stored() if run.info.status == "RUNNING"]


def state(project: Project, run_id: str) -> tuple[str, str]:
    run = project.client.get_run(run_id)
    return run.data.tags["warplog.state"], run.info.status


def test_the_run_of_a_killed_writer_is_marked_by_the_next_one_and_that_of_a_living_one_is_not(project):
    (project.root / "files" / "naive" / "naive.cu").write_text("// edited\n")
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(project.root), *sys.path], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "begun\n"
    (run_id,) = begun(project)
    project.log()
    assert state(project, run_id) == ("writing", "RUNNING")
    writer.kill()
    writer.communicate()
    assert project.changes(project.log()) == {}
    assert state(project, run_id) == ("interrupted", "KILLED")
    assert len(project.current()) == len(LADDER)


@pytest.mark.parametrize(("hours", "expected"), [(0.5, "writing"), (2, "interrupted")])
def test_a_writer_on_another_machine_is_dead_after_an_hour(project, hours, expected):
    tags = {
        **project.run("naive").data.tags,
        "warplog.state": "writing",
        "warplog.writer": "another machine/1/1",
        "warplog.logged_at": str(datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=hours)),
    }
    tags.pop("warplog.fingerprint")
    run_id = project.client.create_run(project.experiment().experiment_id, tags=tags).info.run_id
    project.log()
    assert state(project, run_id)[0] == expected


def test_a_process_with_the_id_of_a_dead_writer_is_not_that_writer():
    tags = {writers.WRITER: writers.this_process()}
    run = SimpleNamespace(data=SimpleNamespace(tags=tags))
    assert not writers.has_died(run)
    tags[writers.WRITER] += "0"
    assert writers.has_died(run)


def test_a_run_that_was_taken_for_interrupted_counts_once_its_writer_ends_it(project, monkeypatch):
    (project.root / "files" / "naive" / "naive.cu").write_text("// edited\n")
    log, marked = Store._log, []

    def slow(self, run_id, run):
        marked.append(run_id)
        project.client.set_terminated(run_id, "KILLED")
        project.client.set_tag(run_id, versions.STATE, versions.INTERRUPTED)
        log(self, run_id, run)

    monkeypatch.setattr(store.Store, "_log", slow)
    project.log()
    assert [project.run("naive").info.run_id] == marked
    assert project.states("naive") == {"superseded": 1, "current": 1}
