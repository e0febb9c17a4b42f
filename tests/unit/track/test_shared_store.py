"""A store that projects and people share: campaigns of one name stay apart, and one campaign is not doubled."""

import getpass
import platform
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from msgspec import structs
from track_tables import CAMPAIGN, LADDER, write_tables
from tracked_project import Project

import made_up_records
from warplog.core.errors import WarplogError
from warplog.judge import campaigns
from warplog.measure import provenance
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.track import log
from warplog.track.prune import Choice, prune

GPU = made_up_records.gpu()
NAME = CAMPAIGN.campaign
OTHER = structs.replace(
    CAMPAIGN, content_sha256="cd" * 32, started="2026-11-20T05:00:00Z"
)  # of the same name


def current(store: Project, **tags: str) -> dict[str, Any]:
    """Returns the current runs with these tags by variant, of which there is one each."""
    found = [run for run in store.current() if tags.items() <= run.data.tags.items()]
    by_variant = {run.data.params["variant"]: run for run in found}
    assert len(by_variant) == len(found)
    return by_variant


def with_keys_of_an_earlier_version(project: Project) -> None:
    for run in project.stored():
        tags = run.data.tags
        *_, digest = tags["warplog.key"].split("/")
        old = f"{tags['campaign']}/h200/sgemm/{tags['variant']}/{tags['origin']}/{digest}"
        project.client.set_tag(run.info.run_id, "warplog.key", old)
        project.client.delete_tag(run.info.run_id, "campaign_id")


def test_two_projects_with_one_campaign_name_keep_all_their_runs(tmp_path, monkeypatch):
    team = Project(tmp_path / "team")
    for name in ("first", "second"):
        (tmp_path / name / "kernels").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / name)
        subprocess.run(["git", "init", "-q"], check=True)
        provenance.write_campaign(Path("h200.json"), GPU, "nightly", "auto", "0" * 64, {})
        tables, record = tmp_path / name / "tables", door.read(Path("h200.json"), Campaign)
        log.log_campaign(write_tables(tables, campaign="nightly"), record, {}, team.uri)
    for name in ("first", "second"):
        assert set(current(team, project=name, campaign="nightly")) == set(LADDER)
    views = [key for key in team.experiment().tags if "sharedViewState" in key]
    assert sorted(key.rpartition(".")[2] for key in views) == [
        "warplog-all",
        "warplog-first-h200-live",
        "warplog-second-h200-live",
    ]


def test_a_laptop_that_logs_the_campaign_of_another_machine_does_not_double_it(project, monkeypatch):
    first = {run.info.run_id for run in project.current()}
    mine = {(run.data.tags["mlflow.user"], run.data.tags["host"]) for run in project.current()}
    assert mine == {(getpass.getuser(), platform.node())}
    monkeypatch.setattr(getpass, "getuser", lambda: "colleague")
    monkeypatch.setattr(platform, "node", lambda: "laptop")
    assert project.logs() == {}
    assert {run.info.run_id for run in project.current()} == first
    project.edit("measurements", lambda rows: rows.assign(hot_us=rows["hot_us"] * 2))
    project.log()
    assert set(current(project)) == set(LADDER)
    theirs = current(project, **{"mlflow.user": "colleague", "host": "laptop"})
    assert set(theirs) == {name for name, rung in LADDER.items() if rung.bad[0] == "ok"}


def test_runs_with_keys_of_an_earlier_version_are_adopted(project):
    with_keys_of_an_earlier_version(project)
    before = {run.info.run_id: run.data.tags["warplog.fingerprint"] for run in project.stored()}
    assert project.logs() == {}
    assert {run.info.run_id: run.data.tags["warplog.fingerprint"] for run in project.stored()} == before
    assert len({run.data.tags["campaign_id"] for run in project.current()}) == 1
    project.edit("measurements", lambda rows: rows.assign(hot_us=rows["hot_us"] * 2))
    project.log()
    assert set(current(project)) == set(LADDER)


def test_runs_of_an_earlier_version_are_not_adopted_by_another_campaign_of_that_name(project):
    with_keys_of_an_earlier_version(project)
    before = {run.info.run_id for run in project.current()}
    assert set(project.logs(OTHER).values()) == {"created"}
    assert before < {run.info.run_id for run in project.current()}
    assert project.logs() == {}
    assert len(project.current()) == 2 * len(LADDER)


def test_a_copy_of_the_campaign_without_a_variant_does_not_hide_its_results(project):
    measured = project.run("naive").info.run_id
    absent = {"status": "missing", "reason": "not in the recorded campaign"}

    def without(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.mask(rows["variant"] == "naive", rows.assign(**absent))

    project.edit("measurements", without)
    project.log()
    assert project.client.get_run(measured).data.tags["warplog.state"] == "current"


def test_a_name_of_several_campaigns_is_refused_and_an_id_is_not(project, tmp_path):
    project.log(OTHER)
    ids = sorted({run.data.tags["campaign_id"] for run in project.current()})
    said = rf"2 campaigns have this name; use an id: {ids[0]} \(project unknown\), {ids[1]} "
    lines: list[str] = []
    with pytest.raises(WarplogError, match=said):
        prune(project.uri, Choice(campaign=NAME, current=True), True, lines.append)
    with pytest.raises(WarplogError, match=said):
        campaigns.fetch(NAME, project.uri, tmp_path)
    assert len(project.current()) == 2 * len(LADDER)
    campaigns.fetch(ids[0], project.uri, tmp_path)
    prune(project.uri, Choice(campaign=ids[0], current=True), True, lines.append)
    assert {run.data.tags["campaign_id"] for run in project.current()} == {ids[1]}
