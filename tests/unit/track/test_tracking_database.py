"""The file of an SQLite store: it appears whole, and one process writes."""

import os
from collections import Counter

import killed
import pytest
from mlflow import MlflowClient
from track_tables import LADDER
from tracked_project import Project

from warplog.core.errors import WarplogError
from warplog.track import connection, database


@pytest.mark.parametrize(
    "done", [False, True], ids=["killed before its tables", "killed before it is renamed"]
)
def test_a_store_whose_creation_was_interrupted_does_not_exist_and_is_made_by_the_next_run(
    tmp_path, monkeypatch, done
):
    file, plain = tmp_path / "mlflow.db", MlflowClient.search_experiments

    def killed_at(client, *arguments, **options):
        if done:
            plain(client, *arguments, **options)
        else:
            (tmp_path / ".mlflow.db.new-1").write_bytes(b"SQLite format 3, not to its end")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "search_experiments", killed_at)
        with pytest.raises(KeyboardInterrupt):
            database.create(file)
    assert not file.exists()
    (tmp_path / "mlflow.db-journal").write_bytes(b"of another database")
    database.create(file)
    assert [path.name for path in tmp_path.iterdir()] == ["mlflow.db"]
    with connection.connect(f"sqlite:///{file}") as link:
        assert link.client.search_experiments()


def test_two_processes_that_log_to_a_new_store_log_each_run_once(tmp_path):
    project = Project(tmp_path).make()
    both = [killed.context().Process(target=project.log) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(200)
    assert [process.exitcode for process in both] == [0, 0]
    assert Counter(run.data.params["variant"] for run in project.stored()) == dict.fromkeys(LADDER, 1)
    assert len(project.current()) == len(LADDER)


def test_a_second_writer_waits_for_the_lock_and_says_so(tmp_path, capsys):
    file = tmp_path / "mlflow.db"
    refused = pytest.raises(WarplogError, match=r"mlflow\.db\.lock: held by another process \(process \d+ on")
    with database.hold(file), refused, database.hold(file, patience_s=0):
        pass
    assert f"another process is logging to it (process {os.getpid()} on " in capsys.readouterr().err


def test_a_store_in_a_folder_that_holds_no_lock_is_refused_at_once():
    said = r"^/proc/x\.db\.lock: cannot be locked .*; remove the cause, or keep the store in another"
    with pytest.raises(WarplogError, match=said), connection.connect("sqlite:////proc/x.db"):
        pass
