"""A store over time: logging again adds nothing, only changed runs are replaced, unrelated runs are left alone."""

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from track_tables import CAMPAIGN, LADDER, write_tables
from tracked_project import Project, moved

from warplog.core.errors import WarplogError
from warplog.track import log
from warplog.track.connection import tracking_uri


@pytest.fixture
def project(template: Project, tmp_path: Path) -> Project:
    """A logged project to change."""
    return moved(template, tmp_path / "moved here")


def test_logging_again_changes_nothing(project):
    before = {r.info.run_id: r for r in project.stored(deleted_too=True)}
    tags = project.experiment().tags
    assert project.changes(project.log()) == {}
    after = {r.info.run_id: r for r in project.stored(deleted_too=True)}
    assert {k: r.data.tags for k, r in after.items()} == {k: r.data.tags for k, r in before.items()}
    assert project.experiment().tags == tags


def test_the_record_of_a_second_run_is_the_same(project):
    first, second = project.log().as_record(), project.log().as_record()
    assert first == second == json.loads(json.dumps(first))
    assert first["experiments"][0]["runs"]["naive"] == project.run("naive").info.run_id
    assert project.experiment().experiment_id in first["experiments"][0]["link"]


def test_a_changed_number_replaces_that_run_alone(project):
    def slower(table):
        return table.assign(hot_us=table["hot_us"].where(table["variant"] != "naive", table["hot_us"] * 2))

    others = {r.info.run_id for r in project.stored() if r.data.params["variant"] != "naive"}
    project.edit("measurements", slower)
    assert project.changes(project.log()) == {"naive": "replaced"}
    assert len(project.stored()) == len(LADDER)
    assert others < {r.info.run_id for r in project.stored()}
    measured = pd.read_parquet(project.tables / "measurements.parquet")
    row = measured[(measured["variant"] == "naive") & (measured["case"] == "4096")].iloc[0]
    assert project.points("naive")["time/hot_us", 4096] == row["hot_us"]


def test_a_changed_file_replaces_its_run(project):
    (project.root / "files" / "naive" / "naive.cu").write_text("// faster now\n")
    assert project.changes(project.log()) == {"naive": "replaced"}


def test_a_variant_added_in_front_leaves_the_other_runs_alone(project):
    def insert(table):
        new = table[table["variant"] == "naive"].assign(variant="first")
        moved = {"order": table["order"] + 1} if "order" in table else {}
        return pd.concat([new, table.assign(**moved)], ignore_index=True)

    for table in ("variants", "measurements", "metrics"):
        project.edit(table, insert)
    colour = project.run("warptile").data.tags["mlflow.runColor"]
    assert project.changes(project.log()) == {"first": "created"}
    assert project.run("warptile").data.tags["ladder_order"] == "8"
    assert project.run("warptile").data.tags["mlflow.runColor"] != colour


def test_a_variant_that_left_the_tables_loses_its_run(project):
    for table in ("variants", "measurements", "metrics"):
        project.edit(table, lambda rows: rows[rows["variant"] != "naive"])
    assert project.changes(project.log()) == {}
    assert {r.data.params["variant"] for r in project.stored()} == set(LADDER) - {"naive"}


def test_new_figures_are_uploaded_without_a_new_run(project):
    from mlflow.artifacts import download_artifacts

    (project.root / "figures" / "ladder.svg").write_text("<svg>new</svg>")
    assert project.changes(project.log()) == {}
    run_id = project.run("cublas").info.run_id
    path = download_artifacts(run_id=run_id, artifact_path="figures/ladder.svg", tracking_uri=project.uri)
    assert Path(path).read_text() == "<svg>new</svg>"


def test_a_run_that_was_cut_short_is_written_again(project, monkeypatch):
    from mlflow import MlflowClient

    (project.root / "files" / "naive" / "naive.cu").write_text("// edited\n")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "log_artifacts", full)
        with pytest.raises(WarplogError, match="No space left on device"):
            project.log()
    assert "RUNNING" in {r.info.status for r in project.stored()}
    assert project.changes(project.log()) == {"naive": "replaced"}
    assert len(project.stored()) == len(LADDER)
    assert {r.info.status for r in project.stored()} == {"FINISHED", "FAILED", "KILLED"}


def test_a_run_that_never_ended_is_written_again(project):
    project.client.update_run(project.run("naive").info.run_id, status="RUNNING")
    assert project.changes(project.log()) == {"naive": "replaced"}


def test_unrelated_runs_experiments_and_campaigns_stay(project):
    client = project.client
    ours = project.experiment().experiment_id
    other = client.create_experiment("my own")
    mine = [client.create_run(other), client.create_run(ours, tags={"campaign": CAMPAIGN["campaign"]})]
    mine += [client.create_run(ours, tags={"campaign": CAMPAIGN["campaign"], "gpu": "h200"})]
    assert project.changes(project.log()) == {}
    write_tables(project.tables, campaign="h200-later")
    changes = project.changes(project.log({**CAMPAIGN, "campaign": "h200-later"}))
    assert set(changes.values()) == {"created"}
    assert {client.get_run(r.info.run_id).info.lifecycle_stage for r in mine} == {"active"}
    assert len(project.stored()) == 2 * len(LADDER) + 2
    assert client.get_experiment(other).tags == {}


def test_a_project_that_moved_takes_its_files_along(project, template):
    """The fixture is a copy, whose store still holds the paths of the original."""
    assert project.changes(project.log()) == {}
    assert str(project.root) in project.run("naive").info.artifact_uri
    assert "source/kernel.cu.txt" in project.files("naive")
    assert str(template.root) in template.run("naive").info.artifact_uri


def test_lost_files_are_logged_again(project):
    shutil.rmtree(project.root / "results" / "mlartifacts")
    assert set(project.changes(project.log()).values()) == {"replaced"}
    assert "source/kernel.cu.txt" in project.files("naive")
    assert len(project.stored()) == len(LADDER)


def test_a_deleted_experiment_comes_back_without_doubles(project):
    (project.root / "files" / "naive" / "naive.cu").write_text("// edited\n")
    project.log()
    project.client.delete_experiment(project.experiment().experiment_id)
    write_tables(project.tables, campaign="h200-later")
    project.log({**CAMPAIGN, "campaign": "h200-later"})
    assert len(project.stored()) == 2 * len(LADDER)


def test_tables_of_two_campaigns_give_each_its_own_runs(project):
    other = Project(project.root / "other")
    write_tables(other.tables, campaign="h200-later")
    for table in ("variants", "measurements", "metrics"):
        more = pd.read_parquet(other.tables / f"{table}.parquet")
        project.edit(table, lambda rows, more=more: pd.concat([rows, more], ignore_index=True))
    assert project.changes(project.log()) == {}
    result = project.log({**CAMPAIGN, "campaign": "h200-later"})
    assert set(project.changes(result).values()) == {"created"}
    assert len(project.stored()) == 2 * len(LADDER)


@pytest.mark.timeout(60)
def test_a_dead_server_fails_with_one_line_and_no_password(template):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        uri = f"http://me:secret@127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(WarplogError) as raised:
            log.log_campaign(template.tables, CAMPAIGN, {}, uri)
    text = str(raised.value)
    assert "does not answer" in text
    assert "MLFLOW_TRACKING_URI" in text
    assert "secret" not in text
    assert "\n" not in text


@pytest.mark.timeout(60)
def test_a_silent_server_fails_too(template, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(WarplogError, match="does not answer"):
            log.log_campaign(template.tables, CAMPAIGN, {}, uri)


def test_a_broken_store_names_the_remedy(template, tmp_path):
    (tmp_path / "mlflow.db").write_text("this is no database, and it is longer than a header\n" * 10)
    with pytest.raises(WarplogError, match=r"mlflow\.db: the MLflow store cannot be used .* move it away"):
        log.log_campaign(template.tables, CAMPAIGN, {}, f"sqlite:///{tmp_path}/mlflow.db")


def test_a_campaign_that_the_tables_lack_is_an_error(template, tmp_path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    with pytest.raises(WarplogError, match="no row of campaign other"):
        log.log_campaign(template.tables, {**CAMPAIGN, "campaign": "other"}, {}, uri)
    with pytest.raises(WarplogError, match="campaign"):
        log.log_campaign(template.tables, {**CAMPAIGN, "campaign": "x' or 1"}, {}, uri)
    with pytest.raises(WarplogError, match=r"variants\.parquet"):
        log.log_campaign(tmp_path, CAMPAIGN, {}, uri)
    assert not (tmp_path / "mlflow.db").exists()


def test_the_environment_is_as_before_and_telemetry_was_off(project, monkeypatch):
    from mlflow import MlflowClient

    seen = []
    plain = MlflowClient.search_experiments

    def watched(*arguments: Any, **options: Any) -> Any:
        seen.append((os.environ["MLFLOW_DISABLE_TELEMETRY"], os.environ["DO_NOT_TRACK"]))
        return plain(*arguments, **options)

    monkeypatch.setattr(MlflowClient, "search_experiments", watched)
    for name in [name for name in os.environ if name.startswith(("MLFLOW_", "DO_NOT_TRACK"))]:
        monkeypatch.delenv(name)
    before = dict(os.environ)
    project.log()
    assert set(seen) == {("true", "true")}, "at each connection"
    assert dict(os.environ) == before


def test_the_environments_uri_goes_first():
    assert tracking_uri("sqlite:///a.db", {}) == "sqlite:///a.db"
    assert tracking_uri("sqlite:///a.db", {"MLFLOW_TRACKING_URI": " "}) == "sqlite:///a.db"
    assert tracking_uri("sqlite:///a.db", {"MLFLOW_TRACKING_URI": "http://x"}) == "http://x"
    assert log.link_base("https://me:pw@host/mlflow/") == "https://host/mlflow"
    assert log.link_base("sqlite:///a.db") == log.LOCAL_UI
