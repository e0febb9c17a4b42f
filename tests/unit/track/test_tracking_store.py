"""A store over time: logging again adds nothing, changed runs are added, and no run is ever deleted."""

import base64
import os
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mlflow import MlflowClient
from msgspec import structs
from track_tables import CAMPAIGN, LADDER, write_tables
from tracked_project import Project, moved

from warplog.core.errors import WarplogError
from warplog.track import identity, log
from warplog.track.address import tracking_uri

IDENTITY = {identity.PROJECT, identity.PROJECT_ID, identity.CAMPAIGN_ID}


@pytest.fixture
def project(template: Project, tmp_path: Path) -> Project:
    """A logged project to change."""
    return moved(template, tmp_path / "moved here")


def noted_calls(monkeypatch, names):
    """Returns the list to which every later call of these methods of MLflow's client adds the method's name."""
    calls = []
    for name in names:
        real = getattr(MlflowClient, name)
        monkeypatch.setattr(
            MlflowClient,
            name,
            lambda *a, _real=real, _name=name, **k: (calls.append(_name), _real(*a, **k))[1],
        )
    return calls


def test_logging_again_changes_nothing(project):
    before = {r.info.run_id: r for r in project.stored(deleted_too=True)}
    tags = project.experiment().tags
    assert project.changes(project.log()) == {}
    after = {r.info.run_id: r for r in project.stored(deleted_too=True)}
    assert {k: r.data.tags for k, r in after.items()} == {k: r.data.tags for k, r in before.items()}
    assert project.experiment().tags == tags


def test_a_new_run_takes_four_requests_besides_its_files(template, tmp_path, monkeypatch):
    """To a server with login, every request costs a check of the password."""
    project = moved(template, tmp_path / "elsewhere")
    calls = noted_calls(
        monkeypatch, ("create_run", "log_batch", "set_terminated", "set_tag", "log_param", "log_metric")
    )
    new = structs.replace(CAMPAIGN, campaign="another")
    write_tables(project.tables, campaign="another")
    done = log.log_campaign(project.tables, new, {}, project.uri)
    runs = [run for family in done.experiments for run in family.runs]
    assert sorted(set(calls)) == ["create_run", "log_batch", "set_terminated"]
    assert len(calls) == 4 * len(runs)


def test_the_record_of_a_second_run_is_the_same(project):
    first, second = project.log().as_record(), project.log().as_record()
    assert first == second
    assert first.experiments[0].runs["naive"] == project.run("naive").info.run_id
    assert project.experiment().experiment_id in first.experiments[0].link


def test_a_changed_number_adds_a_version_of_that_run_alone(project):
    def slower(table):
        return table.assign(hot_us=table["hot_us"].where(table["variant"] != "naive", table["hot_us"] * 2))

    others = {r.info.run_id for r in project.stored() if r.data.params["variant"] != "naive"}
    project.edit("measurements", slower)
    assert project.changes(project.log()) == {"naive": "new version"}
    assert len(project.current()) == len(LADDER)
    assert project.states("naive") == {"superseded": 1, "current": 1}
    assert others < {r.info.run_id for r in project.stored()}
    measured = pd.read_parquet(project.tables / "measurements.parquet")
    row = measured[(measured["variant"] == "naive") & (measured["case"] == "4096")].iloc[0]
    assert project.points("naive")["time/hot_us", 4096] == row["hot_us"]


def test_a_changed_file_adds_a_version_of_its_run(project):
    source = project.root / "files" / "naive" / "naive.cu"
    first = project.run("naive").info.run_id
    before = source.read_text()
    source.write_text("// faster now\n")
    assert project.changes(project.log()) == {"naive": "new version"}
    assert project.run("naive").info.run_id != first
    source.write_text(before)
    assert project.changes(project.log()) == {"naive": "new version"}
    assert project.run("naive").info.run_id == first, "the same content is not stored twice"
    assert project.states("naive") == {"superseded": 1, "current": 1}
    assert project.changes(project.log()) == {}


def test_a_variant_added_in_front_leaves_the_other_runs_alone(project):
    def insert(table):
        new = table[table["variant"] == "naive"].assign(variant="first")
        moved = {"order": table["order"] + 1} if "order" in table else {}
        return pd.concat([new, table.assign(**moved)], ignore_index=True)

    for table in ("variants", "measurements", "metrics"):
        project.edit(table, insert)
    colour = project.run("warptile").data.tags["mlflow.runColor"]
    assert project.changes(project.log()) == {"first": "created"}
    assert project.run("warptile").data.tags["ladder_order"] == "4"
    assert project.run("warptile").data.tags["mlflow.runColor"] != colour


def test_a_smaller_selection_of_variants_leaves_all_runs_as_they_are(project):
    before = {run.info.run_id: run.data.metrics for run in project.current()}
    for table in ("variants", "measurements", "metrics"):
        project.edit(table, lambda rows: rows[rows["variant"].isin(["cublas", "warptile"])])
    assert project.changes(project.log()) == {}
    assert {run.info.run_id: run.data.metrics for run in project.current()} == before


def test_a_smaller_selection_of_cases_adds_runs_beside_the_larger_ones(project):
    before = {run.info.run_id for run in project.current()}
    complete = pd.read_parquet(project.tables / "measurements.parquet")
    project.edit("measurements", lambda rows: rows[rows["case"] == "4096"])
    assert set(project.changes(project.log()).values()) == {"created"}
    assert before < {run.info.run_id for run in project.current()}
    assert len(project.current()) == 2 * len(LADDER)
    complete.assign(hot_us=complete["hot_us"] * 2).to_parquet(project.tables / "measurements.parquet")
    project.log()
    assert len(project.current()) == len(LADDER), "a newer run with all the cases takes the place of both"
    assert project.states("naive") == {"superseded": 2, "current": 1}


def test_claims_that_fewer_variants_decide_do_not_take_the_place_of_those_of_all(project):
    texts = {"claim": "Tiles help.", "measured": 11.8, "unit": "x", "condition": ">= 5", "reason": ""}
    mark = {"id": "B1", "family": "sgemm", "gpu": "h200", "campaign": CAMPAIGN.campaign, "about": ""}

    def log(verdict: str) -> str:
        claims = pd.DataFrame([{"verdict": verdict, **texts, **mark}])
        claims.to_parquet(project.tables / "claims.parquet")
        (logged,) = (one for one in project.log().experiments if one.family == "sgemm")
        return logged.runs["cublas"].run_id

    first = log("confirmed")
    for table in ("variants", "measurements", "metrics"):
        project.edit(table, lambda rows: rows[rows["variant"].isin(["cublas", "warptile"])])
    assert log("not_measurable") != first
    tags = project.client.get_run(first).data.tags
    assert (tags["claim.B1"], tags["warplog.state"]) == ("confirmed", "current")


def test_a_recorded_copy_of_the_campaign_takes_the_place_of_the_live_one_and_back(project):
    live = {run.info.run_id for run in project.current()}
    write_tables(project.tables, origin="recorded")
    assert set(project.changes(project.log()).values()) == {"new version"}
    assert {run.data.tags["origin"] for run in project.current()} == {"recorded"}
    assert len(project.current()) == len(LADDER)
    write_tables(project.tables)
    project.log()
    assert {run.info.run_id for run in project.current()} == live, "the same content is not stored twice"


def test_runs_of_an_earlier_warplog_are_superseded_and_kept(project):
    for run in project.stored():
        tags = run.data.tags
        old = "/".join(tags[name] for name in ("campaign", "gpu", "family", "variant"))
        project.client.set_tag(run.info.run_id, "warplog.key", old)
        for tag in ("warplog.state", "warplog.version", "warplog.selection", *IDENTITY & tags.keys()):
            project.client.delete_tag(run.info.run_id, tag)
    project.log()
    for variant in LADDER:
        assert project.states(variant) == {"superseded": 1, "current": 1}
    assert len(project.stored()) == 2 * len(LADDER)


def test_new_figures_are_uploaded_without_a_new_run(project):
    from mlflow.artifacts import download_artifacts

    (project.root / "figures" / "ladder.svg").write_text("<svg>new</svg>")
    assert project.changes(project.log()) == {}
    run_id = project.run("cublas").info.run_id
    path = download_artifacts(run_id=run_id, artifact_path="figures/ladder.svg", tracking_uri=project.uri)
    assert Path(path).read_text() == "<svg>new</svg>"


def test_each_run_has_a_page_with_the_figures_of_its_family(project):
    png = project.root / "figures" / "ladder.png"
    png.write_bytes(b"a picture")
    assert project.changes(project.log()) == {}
    picture = "data:image/png;base64," + base64.b64encode(b"a picture").decode()
    for run in project.current():
        assert picture in (Path(run.info.artifact_uri) / "figures.html").read_text()
    assert "figures/ladder.png" in project.files("cublas")
    assert "figures/ladder.png" not in project.files("naive"), "as a file it is stored once"


def test_unchanged_figures_cost_one_request_for_each_family(project, monkeypatch):
    calls = noted_calls(
        monkeypatch, ("search_runs", "get_run", "log_artifact", "log_artifacts", "set_tag", "log_batch")
    )
    record = project.log().as_record()
    calls.clear()
    figures = {"sgemm": [project.root / "figures" / "ladder.svg"]}
    log.log_figures(record, figures, project.uri)
    assert calls == ["search_runs"]


def test_new_figures_leave_those_of_superseded_runs_as_they_were(project):
    project.log()
    former = Path(project.run("naive").info.artifact_uri) / "figures.html"
    before = former.read_text()
    project.edit("measurements", lambda rows: rows.assign(hot_us=rows["hot_us"] * 2))
    project.log()
    (project.root / "figures" / "ladder.png").write_bytes(b"another picture")
    project.log()
    now = Path(project.run("naive").info.artifact_uri) / "figures.html"
    assert former != now
    assert former.read_text() == before != now.read_text()


def test_a_run_that_another_version_of_warplog_wrote_is_superseded_and_not_doubled(project):
    """Names of metrics change between versions, and with them the fingerprint; the key stays."""
    for run in project.stored():
        project.client.set_tag(run.info.run_id, "warplog.fingerprint", "of the other version")
    assert set(project.changes(project.log()).values()) == {"new version"}
    assert len(project.current()) == len(LADDER)
    assert project.states("naive") == {"superseded": 1, "current": 1}
    assert project.changes(project.log()) == {}


def test_a_run_that_was_cut_short_is_written_again(project, monkeypatch):
    from mlflow import MlflowClient

    (project.root / "files" / "naive" / "naive.cu").write_text("// edited\n")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "log_artifacts", full)
        with pytest.raises(WarplogError, match=r"the disk is full .*; free some space, then run again"):
            project.log()
    assert "RUNNING" in {r.info.status for r in project.stored()}
    assert project.changes(project.log()) == {"naive": "new version"}
    assert len(project.current()) == len(LADDER)
    assert project.states("naive") == {"superseded": 1, "interrupted": 1, "current": 1}
    assert {r.info.status for r in project.stored()} == {"FINISHED", "FAILED", "KILLED"}


def test_a_run_that_never_ended_is_written_again(project):
    project.client.update_run(project.run("naive").info.run_id, status="RUNNING")
    assert project.changes(project.log()) == {"naive": "created"}
    assert project.states("naive") == {"interrupted": 1, "current": 1}


def test_unrelated_runs_experiments_and_campaigns_stay(project):
    client = project.client
    ours = project.experiment().experiment_id
    other = client.create_experiment("my own")
    mine = [client.create_run(other), client.create_run(ours, tags={"campaign": CAMPAIGN.campaign})]
    mine += [client.create_run(ours, tags={"campaign": CAMPAIGN.campaign, "gpu": "h200"})]
    assert project.changes(project.log()) == {}
    write_tables(project.tables, campaign="h200-later")
    changes = project.changes(project.log(structs.replace(CAMPAIGN, campaign="h200-later")))
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
    assert set(project.changes(project.log()).values()) == {"new version"}
    assert "source/kernel.cu.txt" in project.files("naive")
    assert len(project.current()) == len(LADDER)


def test_an_emptied_file_is_logged_again(project):
    project.log()  # the files of the copy
    folder = Path(project.run("naive").info.artifact_uri)
    (folder / "tables" / "measurements.csv").write_text("")
    assert project.changes(project.log()) == {"naive": "new version"}


def test_a_deleted_experiment_comes_back_without_doubles(project):
    (project.root / "files" / "naive" / "naive.cu").write_text("// edited\n")
    project.log()
    project.client.delete_experiment(project.experiment().experiment_id)
    write_tables(project.tables, campaign="h200-later")
    project.log(structs.replace(CAMPAIGN, campaign="h200-later"))
    assert len(project.current()) == 2 * len(LADDER)


def test_tables_of_two_campaigns_give_each_its_own_runs(project):
    other = Project(project.root / "other")
    write_tables(other.tables, campaign="h200-later")
    for table in ("variants", "measurements", "metrics"):
        more = pd.read_parquet(other.tables / f"{table}.parquet")
        project.edit(table, lambda rows, more=more: pd.concat([rows, more], ignore_index=True))
    assert project.changes(project.log()) == {}
    result = project.log(structs.replace(CAMPAIGN, campaign="h200-later"))
    assert set(project.changes(result).values()) == {"created"}
    assert len(project.stored()) == 2 * len(LADDER)


def test_a_campaign_that_the_tables_lack_is_an_error(template, tmp_path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    with pytest.raises(WarplogError, match="no row of campaign other"):
        log.log_campaign(template.tables, structs.replace(CAMPAIGN, campaign="other"), {}, uri)
    with pytest.raises(WarplogError, match="campaign"):
        log.log_campaign(template.tables, structs.replace(CAMPAIGN, campaign="x' or 1"), {}, uri)
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
