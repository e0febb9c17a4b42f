"""Which run of a line is current: decided by the runs alone, so that writers without a lock agree."""

import contextlib
import itertools
from types import SimpleNamespace

import pytest
from track_tables import LADDER
from tracked_project import Project, moved

from warplog.track import database, versions
from warplog.track.connection import Connection
from warplog.track.store import Store


def stored(run_id: str, version: int, selection: str, status: str = "FINISHED", **tags: str):
    basic = {"warplog.fingerprint": "f", "warplog.version": str(version), "warplog.selection": selection}
    info = SimpleNamespace(run_id=run_id, status=status)
    return SimpleNamespace(info=info, data=SimpleNamespace(tags={**basic, **tags}))


@pytest.mark.parametrize(
    ("runs", "current"),
    [
        ([("a", 1, "1, 2"), ("b", 2, "1, 2")], {"b"}),
        ([("b", 1, "1, 2"), ("a", 1, "1, 2")], {"a"}),
        ([("a", 1, "1, 2"), ("b", 2, "1")], {"a", "b"}),
        ([("a", 1, "1"), ("b", 2, "1, 2")], {"b"}),
        ([("a", 1, "1"), ("b", 1, "2"), ("c", 1, "3")], {"a", "b", "c"}),
        ([("a", 1, "1"), ("b", 2, "1", "RUNNING")], {"a"}),
    ],
)
def test_a_newer_run_of_the_same_or_a_larger_selection_takes_the_place_of_older_ones(runs, current):
    for order in itertools.permutations(runs):
        states = versions.states([stored(*run) for run in order])
        assert {run_id for run_id, state in states.items() if state == "current"} == current


def test_the_key_depends_on_line_and_selection_but_not_on_its_order():
    assert versions.key("c/g/f/v/live", ["1", "2"]) == versions.key("c/g/f/v/live", ["2", "1"])
    keys = {versions.key(line, cases) for line in ("v/live", "v/recorded") for cases in (["1"], ["1", "2"])}
    assert len(keys) == 4


@pytest.fixture
def project(template: Project, tmp_path):
    """A logged project to change."""
    return moved(template, tmp_path / "moved here")


def test_two_writers_without_a_lock_leave_one_current_run_of_each_variant(project, monkeypatch):
    """The second writer logs everything while the first is about to write its first run, as on a server."""
    from mlflow import MlflowClient

    (project.root / "files" / "naive" / "naive.cu").write_text("// edited\n")
    monkeypatch.setattr(database, "hold", lambda file: contextlib.nullcontext())
    plain, others = MlflowClient.create_run, []

    def late(self, *arguments, **options):
        if not others:
            others.append(None)
            others.append(project.log())
        return plain(self, *arguments, **options)

    monkeypatch.setattr(MlflowClient, "create_run", late)
    project.log()
    assert others[1].experiments
    assert project.states("naive") == {"superseded": 2, "current": 1}
    assert len(project.current()) == len(LADDER)
    assert project.changes(project.log()) == {}


def test_wrong_marks_of_a_writer_that_saw_too_little_are_corrected(project):
    run = project.run("naive")
    project.client.set_tag(run.info.run_id, "warplog.state", "superseded")
    assert project.changes(project.log()) == {}
    assert project.run("naive").info.run_id == run.info.run_id


def test_a_run_that_another_process_may_be_writing_is_left_alone(project):
    tags = {
        k: v
        for k, v in project.run("naive").data.tags.items()
        if k.startswith(("warplog.", "campaign", "gpu"))
    }
    tags.pop("warplog.fingerprint")
    experiment = project.experiment().experiment_id
    begun = project.client.create_run(experiment, tags={**tags, "warplog.state": "writing"})
    store = Store(Connection(project.client, None, alone=False))
    store.mark_interrupted([experiment])
    assert project.client.get_run(begun.info.run_id).info.status == "RUNNING"
    project.log()
    assert project.client.get_run(begun.info.run_id).data.tags["warplog.state"] == "interrupted"


def test_a_tag_that_another_process_creates_at_the_same_time_is_set_again(project, monkeypatch):
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    plain, refused = MlflowClient.set_experiment_tag, []

    def busy(self, experiment, key, value):
        if key not in refused:
            refused.append(key)
            raise MlflowException("(sqlite3.IntegrityError) UNIQUE constraint failed: experiment_tags.key")
        return plain(self, experiment, key, value)

    monkeypatch.setattr(MlflowClient, "set_experiment_tag", busy)
    store = Store(Connection(project.client, None, alone=False))
    store.set_experiment_tag(project.experiment(), "mlflow.note.content", "new")
    assert refused
    assert project.experiment().tags["mlflow.note.content"] == "new"


def test_an_experiment_that_another_process_made_meanwhile_is_used(project, monkeypatch):
    from mlflow import MlflowClient

    store = Store(Connection(project.client, None, alone=False))
    plain, asked = MlflowClient.get_experiment_by_name, []

    def unaware(self, name):
        asked.append(name)
        return None if len(asked) == 1 else plain(self, name)

    monkeypatch.setattr(MlflowClient, "get_experiment_by_name", unaware)
    assert store.experiment("warplog/sgemm", "sgemm").name == "warplog/sgemm"
