"""The store is part of the state: planning notices another, deleted or replaced store; deleted runs stay deleted."""

import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from msgspec import structs
from tracked_project import Project

from warplog.plan.files import Files
from warplog.plan.making import make_plan
from warplog.plan.parameters import Parameters
from warplog.records import door
from warplog.track import connection, links, log, presence
from warplog.track.presence import Destination, LoggedCampaign
from warplog.track.view import CHARTS

WORKFLOW = Path(__file__).parents[3] / "workflow"


@pytest.fixture
def record(project: Project) -> Path:
    """The record of the job that logged the project."""
    place = project.root / "results" / "track" / "mlflow.json"
    door.write(place, project.log())
    return place


def attempt(project: Project, record: Path) -> int:
    presence.destination.cache_clear()
    return presence.destination(project.uri, record).attempt


def test_a_store_that_holds_the_campaign_is_not_logged_to_again(project, record):
    assert presence.destination(project.uri, record) == Destination(store=project.uri, attempt=1)
    project.client.delete_run(project.run("naive").info.run_id)
    assert attempt(project, record) == 1, "a run that somebody deleted stays deleted"
    project.client.delete_experiment(project.experiment().experiment_id)
    assert attempt(project, record) == 1


def test_another_store_is_another_parameter_and_one_without_record_the_first_attempt(project, record):
    assert presence.destination("sqlite:///other.db", record).store == "sqlite:///other.db"
    assert presence.destination("http://me:s3cret@host:5000", record).store == "http://host:5000"
    assert attempt(project, project.root / "none.json") == 1


def test_a_deleted_store_is_noticed(project, record):
    (project.root / "results" / "mlflow.db").unlink()
    assert attempt(project, record) == 2
    assert presence.destination(project.uri, record).attempt == 2
    record.unlink()
    assert presence.destination(project.uri, record).attempt == 2, (
        "Snakemake deletes the record, and asks again"
    )


def test_a_store_that_somebody_made_anew_is_noticed(project, record):
    other = Project(project.root, f"sqlite:///{project.root}/other.db")
    with connection.connect(other.uri):
        door.write(record, structs.replace(door.read(record, LoggedCampaign), uri=other.uri))
    os.utime(project.root / "other.db")
    assert attempt(other, record) == 2


def test_a_store_restored_from_an_earlier_copy_is_noticed(project, record):
    file = project.root / "results" / "mlflow.db"
    shutil.copy(file, project.root / "copy.db")
    project.slower()
    door.write(record, project.log())
    shutil.copy(project.root / "copy.db", file)
    assert attempt(project, record) == 2


def test_a_store_that_does_not_answer_counts_as_unchanged(project, record):
    (project.root / "results" / "mlflow.db").write_text("this is no database\n" * 100)
    assert attempt(project, record) == 1


def test_the_parameter_of_the_job_holds_no_password(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://user:a@s3cret@host:5000/?password=s3cret2")
    plan = make_plan({"mode": "recorded"})
    destination = Parameters(Files(plan)).destination(None)
    assert "s3cret" not in json.dumps([destination, plan.decisions(), plan.settings.track.uri])


def test_a_store_that_nobody_changed_is_not_asked(project, record):
    """Importing MLflow takes seconds."""
    os.utime(record)
    code = (
        "import sys; from pathlib import Path; from warplog.track import presence;"
        f"print(presence.destination({project.uri!r}, Path({str(record)!r})).attempt);"
        "print({'mlflow', 'sqlalchemy', 'pandas', 'requests'} & set(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(WORKFLOW)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:2] == ["1", "set()"]


def test_a_page_links_to_each_run_and_to_the_table_and_charts_of_its_family(project):
    done = project.log()
    page = links.page(done, project.uri)
    addresses = [unescape(found) for found in re.findall('href="(.*?)"', page)]
    for family in done.experiments:
        assert {family.link, family.link + CHARTS} <= set(addresses)
        for run in family.runs.values():
            (address,) = (one for one in addresses if run in one)
            assert address.startswith("http://127.0.0.1:5000/#/experiments/")
            assert address.endswith("?workflowType=machine_learning")
    assert "warplog ui" in page
    assert "warplog ui" not in links.page(done, "http://server:5000")


def test_a_hint_names_the_command_that_opens_the_links(project):
    from track_tables import CAMPAIGN

    lines: list[str] = []
    log.log_campaign(project.tables, CAMPAIGN, {}, project.uri, lines.append)
    assert lines[-1].endswith("to open the links, run: uv run warplog ui")
    found = [line for line in lines if "/runs/" in line]
    assert found
    assert all(line.endswith("?workflowType=machine_learning") for line in found)
