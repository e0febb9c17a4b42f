"""Which run of a line is current: decided by the runs alone, so that writers without a lock agree."""

import contextlib
import datetime
import itertools
import platform
from types import SimpleNamespace

import pytest
from track_tables import LADDER

from warplog.track import database, versions
from warplog.track.connection import Connection
from warplog.track.store import Store


def stored(run_id: str, version: int, selection: str, status: str = "FINISHED", **tags: str):
    basic = {"warplog.fingerprint": "f", "warplog.version": str(version), "warplog.selection": selection}
    info = SimpleNamespace(run_id=run_id, status=status, lifecycle_stage="active")
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


@pytest.mark.parametrize("tag", ["", "newest", "-3", "9" * 5000])
def test_a_tag_that_is_no_number_of_a_version_counts_as_that_of_an_earlier_warplog(tag):
    """Every member of a team can write tags."""
    runs = [stored("a", 1, "1, 2"), stored("b", 0, "1, 2", **{"warplog.version": tag})]
    assert versions.newest(runs).info.run_id == "a"


def test_the_key_depends_on_line_and_selection_but_not_on_its_order():
    assert versions.key("c/g/f/v/live", ["1", "2"]) == versions.key("c/g/f/v/live", ["2", "1"])
    keys = {versions.key(line, cases) for line in ("v/live", "v/recorded") for cases in (["1"], ["1", "2"])}
    assert len(keys) == 4


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
    assert project.logs() == {}


def test_wrong_marks_of_a_writer_that_saw_too_little_are_corrected(project):
    run = project.run("naive")
    project.client.set_tag(run.info.run_id, "warplog.state", "superseded")
    assert project.logs() == {}
    assert project.run("naive").info.run_id == run.info.run_id


@pytest.mark.parametrize(
    ("writer", "hours", "dead"),
    [
        (versions.this_writer(), 0, False),
        (f"{platform.node()}/999999999", 0, True),
        ("another host/999999999", 0, False),
        ("another host/1", 2, True),
        ("", 2, True),
    ],
    ids=["this process", "no process here", "another host", "another host, long ago", "nameless, long ago"],
)
def test_the_run_of_a_dead_writer_is_marked_and_that_of_another_is_left_alone(project, writer, hours, dead):
    begun = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=hours)
    tags = project.run("naive").data.tags | {
        "warplog.state": "writing",
        "warplog.writer": writer,
        "warplog.logged_at": begun.isoformat(),
    }
    tags.pop("warplog.fingerprint")
    experiment = project.experiment().experiment_id
    run_id = project.client.create_run(experiment, tags=tags).info.run_id
    Store(Connection(project.client, None)).mark_interrupted([experiment])
    run = project.client.get_run(run_id)
    state = run.data.tags["warplog.state"], run.info.status
    assert state == (("interrupted", "KILLED") if dead else ("writing", "RUNNING"))
    project.log()
    run = project.client.get_run(run_id)
    assert run.data.tags["warplog.state"] == "interrupted", (
        "nobody else can be writing to a file that is locked"
    )


@pytest.mark.parametrize("hostile", ["9" * 30, "-1", "x", "\u0663"])
def test_a_writer_that_names_no_process_is_judged_by_its_age(hostile):
    tags = {"warplog.writer": f"{platform.node()}/{hostile}", "warplog.logged_at": "2026-11-20T03:00:00"}
    assert versions.has_died(SimpleNamespace(data=SimpleNamespace(tags=tags)))


def test_a_run_that_was_taken_for_interrupted_counts_once_its_writer_ends_it(project, monkeypatch):
    from mlflow import MlflowClient

    (project.root / "files" / "naive" / "naive.cu").write_text("// edited\n")
    upload, marked = MlflowClient.log_artifacts, []

    def slow(self, run_id, *arguments):
        marked.append(run_id)
        project.client.set_terminated(run_id, "KILLED")
        project.client.set_tag(run_id, versions.STATE, versions.INTERRUPTED)
        upload(self, run_id, *arguments)

    monkeypatch.setattr(MlflowClient, "log_artifacts", slow)
    project.log()
    assert [project.run("naive").info.run_id] == marked
    assert project.states("naive") == {"superseded": 1, "current": 1}


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
    store = Store(Connection(project.client, None))
    store.set_experiment_tag(project.experiment(), "mlflow.note.content", "new")
    assert refused
    assert project.experiment().tags["mlflow.note.content"] == "new"


def test_an_experiment_that_another_process_made_meanwhile_is_used(project, monkeypatch):
    from mlflow import MlflowClient

    store = Store(Connection(project.client, None))
    plain, asked = MlflowClient.get_experiment_by_name, []

    def unaware(self, name):
        asked.append(name)
        return None if len(asked) == 1 else plain(self, name)

    monkeypatch.setattr(MlflowClient, "get_experiment_by_name", unaware)
    assert store.experiment("warplog/sgemm", "sgemm").name == "warplog/sgemm"
