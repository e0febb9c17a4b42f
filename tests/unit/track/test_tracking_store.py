"""A store over time: logging again adds nothing, changed runs are added, and no run is ever deleted."""

import base64
import gzip
import os
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from mlflow import MlflowClient
from msgspec import structs
from track_tables import CAMPAIGN, LADDER, write_tables
from tracked_project import Project

from warplog.core.errors import WarplogError
from warplog.track import log
from warplog.track.address import tracking_uri

LATER = structs.replace(CAMPAIGN, campaign="h200-later")


@pytest.fixture
def calls(monkeypatch):
    """Returns the list to which every call of MLflow's client that concerns runs adds its name."""
    found = []
    names = ("create_run", "log_batch", "log_artifact", "log_artifacts", "set_tag", "set_terminated")
    for name in (*names, "search_runs", "get_run", "log_metric", "log_param"):
        real = getattr(MlflowClient, name)
        monkeypatch.setattr(
            MlflowClient,
            name,
            lambda *a, _real=real, _name=name, **k: (found.append(_name), _real(*a, **k))[1],
        )
    return found


def ids(runs):
    return {run.info.run_id for run in runs}


def artifacts(run) -> Path:
    return Path(run.info.artifact_uri)


def figures_on_page(run) -> dict[str, str]:
    """The figures that the page of a run holds, by name."""
    page = (artifacts(run) / "figures.html").read_text()
    packed = re.findall(r'<h2 id="(.+?)">.*\n<img .*data-packed="(.+?)">', page)
    return {name: gzip.decompress(base64.b64decode(text)).decode() for name, text in packed}


def test_logging_again_changes_nothing(project):
    before, tags = {r.info.run_id: r.data for r in project.stored()}, project.experiment().tags
    assert project.logs() == {}
    after = {r.info.run_id: r.data for r in project.stored()}
    assert {k: data.tags for k, data in after.items()} == {k: data.tags for k, data in before.items()}
    assert project.experiment().tags == tags


def test_several_processes_make_the_runs_that_one_makes(project, calls):
    write_tables(project.tables, campaign=LATER.campaign)
    alone = log.log_campaign(project.tables, LATER, {}, project.uri)
    assert len(alone.experiments) > 1
    calls.clear()
    shared = log.log_campaign(project.tables, LATER, {}, project.uri, processes=2)
    assert set(calls) == {"search_runs"}
    assert shared == alone


def test_a_new_run_takes_five_calls_and_an_unchanged_one_none(project, calls):
    """To a server with login, every request costs a check of the password."""
    write_tables(project.tables, campaign=LATER.campaign)
    done = log.log_campaign(project.tables, LATER, {}, project.uri)
    runs = sum(len(family.runs) for family in done.experiments)
    assert sorted({*calls} - {"search_runs"}) == [
        "create_run",
        "log_artifacts",
        "log_batch",
        "set_terminated",
    ]
    assert len(calls) - calls.count("search_runs") == 5 * runs
    log.log_figures(done, [project.root / "figures" / "sgemm"], project.uri)
    calls.clear()
    log.log_campaign(project.tables, LATER, {}, project.uri)
    log.log_figures(done, [project.root / "figures" / "sgemm"], project.uri)
    assert set(calls) == {"search_runs"}


def test_the_record_of_a_second_run_is_the_same(project):
    first, second = project.log(), project.log()
    assert first == second
    assert first.experiments[0].runs["naive"] == project.run("naive").info.run_id
    assert (
        first.last in first.experiments[0].runs.values() or first.last in first.experiments[1].runs.values()
    )
    assert project.experiment().experiment_id in first.experiments[0].link


def test_a_changed_number_adds_a_version_of_that_run_alone(project):
    others = {r.info.run_id for r in project.stored() if r.data.params["variant"] != "naive"}
    project.slower("naive")
    assert project.logs() == {"naive": "new version"}
    assert len(project.current()) == len(LADDER)
    assert project.states("naive") == {"superseded": 1, "current": 1}
    assert others < ids(project.stored())
    measured = pd.read_parquet(project.tables / "measurements.parquet")
    row = measured[(measured["variant"] == "naive") & (measured["case"] == "4096")].iloc[0]
    assert project.points("naive")["time/hot_us", 4096] == row["hot_us"]


def test_a_changed_file_adds_a_version_of_its_run(project):
    source = project.root / "files" / "naive" / "naive.cu"
    first, before = project.run("naive").info.run_id, source.read_text()
    source.write_text("// faster now\n")
    assert project.logs() == {"naive": "new version"}
    assert project.run("naive").info.run_id != first
    source.write_text(before)
    assert project.logs() == {"naive": "new version"}
    assert project.run("naive").info.run_id == first, "the same content is not stored twice"
    assert project.states("naive") == {"superseded": 1, "current": 1}
    assert project.logs() == {}


def test_a_variant_added_in_front_leaves_the_other_runs_alone(project):
    def insert(table):
        new = table[table["variant"] == "naive"].assign(variant="first")
        moved = {"order": table["order"] + 1} if "order" in table else {}
        return pd.concat([new, table.assign(**moved)], ignore_index=True)

    for table in ("variants", "measurements", "metrics"):
        project.edit(table, insert)
    colour = project.run("warptile").data.tags["mlflow.runColor"]
    assert project.logs() == {"first": "created"}
    assert project.run("warptile").data.tags["ladder_order"] == "4"
    assert project.run("warptile").data.tags["mlflow.runColor"] != colour


def test_a_smaller_selection_of_variants_leaves_all_runs_as_they_are(project):
    before = {run.info.run_id: run.data.metrics for run in project.current()}
    project.only("cublas", "warptile")
    assert project.logs() == {}
    assert {run.info.run_id: run.data.metrics for run in project.current()} == before


def test_a_smaller_selection_of_cases_adds_runs_beside_the_larger_ones(project):
    before = ids(project.current())
    complete = pd.read_parquet(project.tables / "measurements.parquet")
    project.edit("measurements", lambda rows: rows[rows["case"] == "4096"])
    assert set(project.logs().values()) == {"created"}
    assert before < ids(project.current())
    assert len(project.current()) == 2 * len(LADDER)
    complete.assign(hot_us=complete["hot_us"] * 2).to_parquet(project.tables / "measurements.parquet")
    project.log()
    assert len(project.current()) == len(LADDER), "a newer run with all the cases takes the place of both"
    assert project.states("naive") == {"superseded": 2, "current": 1}


def test_claims_that_fewer_variants_decide_do_not_take_the_place_of_those_of_all(project):
    texts = {"claim": "Tiles help.", "measured": 11.8, "unit": "x", "condition": ">= 5", "reason": ""}
    mark = {"id": "B1", "family": "sgemm", "gpu": "h200", "campaign": CAMPAIGN.campaign, "about": ""}

    def logs(verdict: str) -> str:
        pd.DataFrame([{"verdict": verdict, **texts, **mark}]).to_parquet(project.tables / "claims.parquet")
        (logged,) = (one for one in project.log().experiments if one.family == "sgemm")
        return logged.runs["cublas"]

    first = logs("confirmed")
    project.only("cublas", "warptile")
    assert logs("not_measurable") != first
    tags = project.client.get_run(first).data.tags
    assert (tags["claim.B1"], tags["warplog.state"]) == ("confirmed", "current")


def test_a_recorded_copy_of_the_campaign_takes_the_place_of_the_live_one_and_back(project):
    live = ids(project.current())
    write_tables(project.tables, origin="recorded")
    assert set(project.logs().values()) == {"new version"}
    assert {run.data.tags["origin"] for run in project.current()} == {"recorded"}
    assert len(project.current()) == len(LADDER)
    write_tables(project.tables)
    project.log()
    assert ids(project.current()) == live, "the same content is not stored twice"


def test_new_figures_are_added_to_the_current_runs_without_new_ones(project):
    figures = project.root / "figures" / "sgemm"
    former = project.run("naive")
    before = (artifacts(former) / "figures.html").read_text()
    project.slower()
    project.log()
    (figures / "ladder.png").write_bytes(b"a picture")
    (figures / "ladder.svg").write_text("<svg>new</svg>")
    assert project.logs() == {}
    for run in project.current():
        assert figures_on_page(run)["ladder"] == "<svg>new</svg>"
    assert (artifacts(project.run("cublas")) / "figures" / "ladder.svg").read_text() == "<svg>new</svg>"
    assert "figures/ladder.png" in project.files("cublas")
    assert "figures/ladder.png" not in project.files("naive"), "as a file it is stored once"
    assert (artifacts(former) / "figures.html").read_text() == before, "of a superseded run"


def test_a_run_that_another_version_of_warplog_wrote_is_superseded_and_not_doubled(project):
    """Names of metrics change between versions, and with them the fingerprint; the key stays."""
    for run in project.stored():
        project.client.set_tag(run.info.run_id, "warplog.fingerprint", "of the other version")
    assert set(project.logs().values()) == {"new version"}
    assert len(project.current()) == len(LADDER)
    assert project.states("naive") == {"superseded": 1, "current": 1}
    assert project.logs() == {}


def test_a_run_that_was_deleted_stays_deleted_until_its_content_changes(project):
    project.slower("naive")
    project.log()
    gone = project.run("naive").info.run_id
    project.client.delete_run(gone)
    assert project.logs() == {"naive": "deleted"}
    assert project.states("naive") == {"superseded": 1}, "the former numbers do not come back as current ones"
    (sgemm,) = (one for one in project.log().experiments if one.family == "sgemm")
    assert "naive" not in sgemm.runs
    project.slower("naive")
    assert project.logs() == {"naive": "new version"}
    assert project.states("naive") == {"superseded": 1, "current": 1}


def test_without_its_baseline_run_a_family_still_gets_its_figures(project):
    project.client.delete_run(project.run("cublas").info.run_id)
    (project.root / "figures" / "sgemm" / "ladder.svg").write_text("<svg>new</svg>")
    project.log()
    assert figures_on_page(project.run("naive"))["ladder"] == "<svg>new</svg>"


def test_unrelated_runs_experiments_and_campaigns_stay(project):
    client, ours = project.client, project.experiment().experiment_id
    other = client.create_experiment("my own")
    mine = [client.create_run(other), client.create_run(ours, tags={"campaign": CAMPAIGN.campaign})]
    mine += [client.create_run(ours, tags={"campaign": CAMPAIGN.campaign, "gpu": "h200"})]
    assert project.logs() == {}
    write_tables(project.tables, campaign="h200-later")
    assert set(project.logs(LATER).values()) == {"created"}
    assert {client.get_run(r.info.run_id).info.lifecycle_stage for r in mine} == {"active"}
    assert len(project.stored()) == 2 * len(LADDER) + 2
    assert client.get_experiment(other).tags == {}


def test_a_project_that_moved_takes_its_files_along(project, template):
    """The fixture is a copy, whose store still holds the paths of the original."""
    assert project.logs() == {}
    assert str(project.root) in project.run("naive").info.artifact_uri
    assert "source/kernel.cu.txt" in project.files("naive")
    assert str(template.root) in template.run("naive").info.artifact_uri


def test_lost_and_emptied_files_are_logged_again(project):
    project.log()  # the files of the copy
    (artifacts(project.run("naive")) / "tables" / "measurements.csv").write_text("")
    assert project.logs() == {"naive": "new version"}
    shutil.rmtree(project.root / "results" / "mlartifacts")
    assert set(project.logs().values()) == {"new version"}
    assert "source/kernel.cu.txt" in project.files("naive")
    assert len(project.current()) == len(LADDER)


def test_a_deleted_experiment_comes_back_with_its_runs_when_another_campaign_is_logged(project):
    project.client.delete_experiment(project.experiment().experiment_id)
    write_tables(project.tables, campaign="h200-later")
    project.log(LATER)
    assert len(project.current()) == 2 * len(LADDER)


def test_tables_of_two_campaigns_give_each_its_own_runs(project):
    other = Project(project.root / "other")
    write_tables(other.tables, campaign="h200-later")
    for table in ("variants", "measurements", "metrics"):
        more = pd.read_parquet(other.tables / f"{table}.parquet")
        project.edit(table, lambda rows, more=more: pd.concat([rows, more], ignore_index=True))
    assert project.logs() == {}
    assert set(project.logs(LATER).values()) == {"created"}
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
    seen, plain = [], MlflowClient.search_experiments

    def watched(*arguments, **options):
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
