"""A team's MLflow server (tests/cluster/mlflow_up.sh): several projects and writers, passwords, rights, a restart."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from base64 import b64encode
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from msgspec import structs

from warplog.core import store
from warplog.core.errors import WarplogError
from warplog.core.files import write_bytes
from warplog.judge import comparison
from warplog.judge.campaigns import Sources
from warplog.measure import provenance
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.records.extract import Extract
from warplog.records.family_file import FamilyRecord
from warplog.records.stages import folder_of
from warplog.records.time import Time
from warplog.track import log, versions
from warplog.track.artefacts import VariantFiles

PROJECT = Path(__file__).parents[2]
RECORDED = PROJECT / "results" / "recorded" / "h200"
SERVER = f"http://127.0.0.1:{os.environ.get('MLFLOW_PORT', '5056')}"
ADMIN = ("admin", os.environ.get("MLFLOW_PASSWORD", "warplog-test-1"))
PASSWORD = "a-long-password-1"
FAMILY = "quantization"
VARIANTS = 3
# Logs the tables in a folder, for a process of its own; an error is one line.
LOG = """
import sys
from pathlib import Path
from warplog.core.errors import as_one_line
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.track import log
with as_one_line():
    folder = Path(sys.argv[1])
    log.log_campaign(folder, door.read(folder / "campaign.json", Campaign), {}, sys.argv[2])
"""


def ask(path: str, user: tuple[str, str] = ADMIN, **data: Any) -> Any:
    """Returns the answer of the server: of GET, or of POST with `data`."""
    request = urllib.request.Request(f"{SERVER}{path}", json.dumps(data).encode() if data else None)
    request.add_header("Authorization", f"Basic {b64encode(':'.join(user).encode()).decode()}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or "{}")


def is_up() -> bool:
    try:
        return urllib.request.urlopen(f"{SERVER}/health", timeout=5).status == 200
    except OSError:
        return False


pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not is_up(), reason="no test server is up: tests/cluster/mlflow_up.sh up"),
]


@pytest.fixture
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process logs in as the administrator."""
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", ADMIN[0])
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", ADMIN[1])


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """The recorded tables of a family, as a campaign that the server does not know."""
    return renamed(tmp_path / "tables", f"team-{os.getpid()}-{time.time_ns()}")


def renamed(folder: Path, name: str, families: list[str] | None = None) -> Path:
    folder.mkdir(parents=True)
    for path in (RECORDED / "tables").glob("*.parquet"):
        table = pd.read_parquet(path)
        if "family" in table:
            table = table[table["family"].isin(families or [FAMILY])]
        table = table.assign(campaign=name) if "campaign" in table else table
        table.to_parquet(folder / path.name, index=False)
    (record,) = (RECORDED / "campaign").glob("*.json")
    door.write(folder / "campaign.json", structs.replace(door.read(record, Campaign), campaign=name))
    return folder


def writer(tables: Path, user: tuple[str, str] = ADMIN) -> "subprocess.Popen[str]":
    """Starts a process that logs the tables as this user."""
    names = {"MLFLOW_TRACKING_USERNAME": user[0], "MLFLOW_TRACKING_PASSWORD": user[1]}
    environment = {**os.environ, **names, "PYTHONPATH": str(PROJECT / "workflow")}
    command = [sys.executable, "-c", LOG, str(tables), SERVER]
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def campaign_of(tables: Path) -> Campaign:
    return door.read(tables / "campaign.json", Campaign)


def states(tables: Path, family: str = FAMILY) -> list[tuple[str, str]]:
    """Returns variant and state of the runs with the campaign's name on the server."""
    return sorted((tags["variant"], tags.get(versions.STATE, "")) for tags in runs(tables, family))


def runs(tables: Path, family: str = FAMILY) -> list[dict[str, str]]:
    """Returns the tags of the runs with the campaign's name on the server."""
    name = campaign_of(tables).campaign
    experiment = ask(f"/api/2.0/mlflow/experiments/get-by-name?experiment_name=warplog/{family}")[
        "experiment"
    ]
    found = ask(
        "/api/2.0/mlflow/runs/search",
        experiment_ids=[experiment["experiment_id"]],
        filter=f"tags.campaign = '{name}'",
        max_results=500,
    )
    return [{tag["key"]: tag["value"] for tag in run["data"]["tags"]} for run in found.get("runs", [])]


def current(tables: Path) -> list[str]:
    return [variant for variant, state in states(tables) if state == versions.CURRENT]


def test_a_wrong_password_is_one_line_that_names_the_variables(tables: Path) -> None:
    done = writer(tables, ("admin", "wrong-password-1"))
    _, error = done.communicate(timeout=600)
    assert done.returncode == 1
    assert len(error.strip().splitlines()) == 1
    assert "the login was refused; set user name and password in MLFLOW_TRACKING_USERNAME" in error


def test_four_writers_of_one_campaign_leave_one_current_run_per_variant(tables: Path, login: None) -> None:
    first = renamed(tables.with_name("first"), f"first-{time.time_ns()}")
    log.log_campaign(first, campaign_of(first), {}, SERVER)
    writers = [writer(tables) for _ in range(4)]
    errors = [one.communicate(timeout=800)[1] for one in writers]
    assert [one.returncode for one in writers] == [0] * 4, errors
    assert len(current(tables)) == len(set(current(tables))) == VARIANTS


def test_two_projects_with_one_campaign_name_keep_all_their_runs(
    tmp_path: Path, login: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"nightly-{time.time_ns()}"
    of_project = {}
    for project in ("first", "second"):
        (tmp_path / project / "kernels").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / project)
        tables = renamed(tmp_path / project / "tables", name, ["transpose"])
        record = campaign_of(tables)
        path = tables / "campaign.json"
        provenance.write_campaign(path, record.device, name, "auto", "0" * 64, record.tools)
        of_project[project] = tables
    for tables in (*of_project.values(), *of_project.values()):
        log.log_campaign(tables, campaign_of(tables), {}, SERVER)
    found = [(one["project"], one["variant"], one[versions.STATE]) for one in runs(tables, "transpose")]
    assert {state for *_, state in found} == {versions.CURRENT}
    assert [len({v for p, v, _ in found if p == project}) for project in of_project] == [7, 7]
    assert len(found) == 14


def test_the_runs_of_a_killed_writer_are_marked_by_the_next_logging(tables: Path, login: None) -> None:
    other = renamed(tables.with_name("other"), f"other-{time.time_ns()}")
    log.log_campaign(other, campaign_of(other), {}, SERVER)
    killed = writer(tables)
    while killed.poll() is None and versions.WRITING not in {state for _, state in states(tables)}:
        pass
    killed.kill()
    killed.communicate()
    assert versions.WRITING in {state for _, state in states(tables)}
    log.log_campaign(other, campaign_of(other), {}, SERVER)
    assert versions.WRITING not in {state for _, state in states(tables)}
    assert versions.INTERRUPTED in {state for _, state in states(tables)}
    log.log_campaign(tables, campaign_of(tables), {}, SERVER)
    assert len(current(tables)) == len(set(current(tables))) == VARIANTS


def test_a_reader_cannot_log_and_an_editor_can(tables: Path, login: None) -> None:
    log.log_campaign(tables, campaign_of(tables), {}, SERVER)
    user = (f"colleague{time.time_ns()}", PASSWORD)
    ask("/api/2.0/mlflow/users/create", username=user[0], password=user[1])
    mine = renamed(tables.with_name("mine"), f"colleague-{time.time_ns()}")
    done = writer(mine, user)
    _, error = done.communicate(timeout=600)
    assert done.returncode == 1
    assert len(error.strip().splitlines()) == 1
    assert "right" in error or "permission" in error.lower(), error
    experiment = ask(f"/api/2.0/mlflow/experiments/get-by-name?experiment_name=warplog/{FAMILY}")[
        "experiment"
    ]
    right = {"resource_type": "experiment", "resource_id": experiment["experiment_id"], "permission": "EDIT"}
    ask("/api/3.0/mlflow/users/permissions/grant", username=user[0], **right)
    done = writer(mine, user)
    _, error = done.communicate(timeout=600)
    assert done.returncode == 0, error
    assert len(current(mine)) == VARIANTS


def test_a_server_that_restarts_ends_logging_with_one_line_and_the_next_run_completes_it(
    tables: Path,
) -> None:
    script = PROJECT / "tests" / "cluster" / "mlflow_up.sh"
    running = writer(tables)
    while running.poll() is None and not states(tables):
        pass
    subprocess.run([script, "restart"], check=True, timeout=600, stdout=subprocess.DEVNULL)
    _, error = running.communicate(timeout=600)
    if running.returncode:
        assert len(error.strip().splitlines()) == 1, error
        assert "start" in error or "run again" in error
    again = writer(tables)
    _, error = again.communicate(timeout=600)
    assert again.returncode == 0, error
    assert len(current(tables)) == len(set(current(tables))) == VARIANTS


def test_a_campaign_on_the_server_is_compared_with_the_recorded_one(
    tables: Path, login: None, tmp_path: Path
) -> None:
    records = {
        f"{folder_of(kind)}.json": FamilyRecord.read(
            RECORDED / folder_of(kind) / "h200" / f"{FAMILY}.json", kind
        ).variants
        for kind in (Time, Extract)
    }
    files = {
        variant: VariantFiles((), {name: found[variant] for name, found in records.items()})
        for variant in records["time.json"]
    }
    log.log_campaign(tables, campaign_of(tables), {FAMILY: lambda: files}, SERVER)
    base = tmp_path / "base" / "time" / "h200"
    write_bytes(
        base / f"{FAMILY}.json", store.read(RECORDED / "time" / "h200" / f"{FAMILY}.json", 1 << 24, "")
    )
    names = (str(tmp_path / "base"), f"mlflow:{campaign_of(tables).campaign}")
    found = comparison.run(names, Sources(tmp_path, SERVER))
    assert {row.verdict.time.ratio for row in found.rows if row.verdict} == {1.0}
    assert not {row.word for row in found.rows} & {"FASTER", "SLOWER", "REFUSED"}
    assert {row.variant for row in found.rows} == set(records["time.json"])
    with pytest.raises(WarplogError, match="no such campaign or run"):
        comparison.run((names[0], "mlflow:nobody"), Sources(tmp_path, SERVER))
