"""The commit in the provenance of measurements: of the configuration, of the checkout, or of the campaign."""

import subprocess
from pathlib import Path

import pytest
from msgspec import structs

import made_up_records
from warplog.catalog.family import load_family
from warplog.core import paths
from warplog.measure import provenance
from warplog.measure.job import make_jobs
from warplog.records import door
from warplog.records.campaign import Campaign, Project
from warplog.records.config import CheckSettings
from warplog.records.measured import Session

KERNELS = Path(__file__).parents[3] / "kernels"
GPU = made_up_records.gpu(
    slug="host",
    name="a GPU",
    sms=4,
    memory_bytes=1 << 30,
    driver="580",
    cuda_driver="13.0",
    max_sm_mhz=1000,
    power_limit_w=None,
)
CHECKED_OUT, NAMED = "0" * 40, "1234567"


@pytest.fixture
def record(tmp_path, monkeypatch):
    """Returns a function that starts a campaign with a configured commit, and returns the path of its record."""
    monkeypatch.setattr(provenance, "commit_of", lambda project: CHECKED_OUT)

    def started(commit):
        path = tmp_path / "campaign" / "host.json"
        provenance.write_campaign(path, GPU, "auto", commit, "0" * 64, {})
        return path

    return started


def commit_of_a_job(campaign):
    (job,) = make_jobs(
        family=load_family(KERNELS / "transpose" / "family.yaml"),
        variants=["naive"],
        gpu=GPU,
        builds=[campaign.with_name("record.json")],
        campaign=campaign,
        settings=CheckSettings(),
        record=campaign.with_name("transpose.json"),
    )
    return job.head(Session(), ("ok", ""), source_sha256="0" * 64)["provenance"].commit


def test_measurements_carry_the_commit_that_the_configuration_names(record):
    campaign = record(NAMED)
    assert door.read(campaign, Campaign).commit == NAMED
    assert commit_of_a_job(campaign) == NAMED


def test_otherwise_measurements_carry_the_commit_of_the_checkout_they_ran_in(record, monkeypatch):
    campaign = record("auto")
    assert door.read(campaign, Campaign).commit == CHECKED_OUT
    monkeypatch.setattr(provenance, "commit_of", lambda project: "f" * 40)
    assert commit_of_a_job(campaign) == "f" * 40


def test_outside_of_a_checkout_measurements_carry_the_commit_of_the_campaign(record, monkeypatch):
    campaign = record("auto")
    monkeypatch.setattr(provenance, "commit_of", lambda project: "")
    assert commit_of_a_job(campaign) == CHECKED_OUT
    door.write(campaign, structs.replace(door.read(campaign, Campaign), commit=NAMED))
    assert commit_of_a_job(campaign) == NAMED


def test_the_commit_is_asked_of_the_project(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(provenance, "commit_of", lambda project: asked.append(project) or CHECKED_OUT)
    provenance.write_campaign(tmp_path / "host.json", GPU, "auto", NAMED, "0" * 64, {})
    assert asked == []
    provenance.write_campaign(tmp_path / "host.json", GPU, "auto", "auto", "0" * 64, {})
    assert asked == [paths.project()]


def git(folder, *arguments):
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_each_campaign_has_an_id_of_its_own(record):
    first, second = (door.read(record("auto"), Campaign) for _ in range(2))
    assert first.campaign == second.campaign
    assert first.id != second.id


def test_a_project_is_named_by_its_repository_and_by_the_first_commit_if_that_is_known(tmp_path):
    repository = tmp_path / "my kernels"
    project = repository / "warplog"
    project.mkdir(parents=True)
    assert provenance.project_of(project) == Project(name="warplog", id="")
    git(repository, "init", "-q")
    assert provenance.project_of(project) == Project(name="my_kernels", id="")
    for message in ("first", "second"):
        git(repository, "commit", "-q", "--allow-empty", "-m", message)
    first = git(repository, "rev-parse", "HEAD~1")
    assert provenance.project_of(project) == Project(name="my_kernels", id=first)
    git(tmp_path, "clone", "-q", "--depth", "1", repository.as_uri(), "shallow")
    assert provenance.project_of(tmp_path / "shallow") == Project(name="shallow", id="")
