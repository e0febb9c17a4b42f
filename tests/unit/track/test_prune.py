"""warplog prune: deletes superseded and interrupted runs, and only if told to."""

import re
from collections import Counter

import pytest
from msgspec import structs
from track_tables import CAMPAIGN, LADDER, write_tables
from tracked_project import Project, moved

from warplog.cli.main import main


@pytest.fixture(scope="module")
def grown(template: Project, tmp_path_factory) -> Project:
    """Returns a logged project with a superseded, an interrupted and a foreign run, and a second campaign."""
    project = moved(template, tmp_path_factory.mktemp("grown") / "moved here")
    (project.root / "files" / "naive" / "naive.cu").write_text("// edited\n")
    project.log()
    cut = project.run("warptile").info.run_id
    project.client.update_run(cut, status="RUNNING")
    project.log()
    project.client.create_run(project.experiment().experiment_id, tags={"campaign": CAMPAIGN.campaign})
    write_tables(project.tables, campaign="h200-later")
    project.log(structs.replace(CAMPAIGN, campaign="h200-later"))
    return project


@pytest.fixture
def project(grown: Project, tmp_path) -> Project:
    """A copy of it to change."""
    return moved(grown, tmp_path / "moved again")


def states(project: Project) -> Counter[str]:
    return Counter(run.data.tags.get("warplog.state", "foreign") for run in project.stored())


def test_it_lists_what_it_would_delete_and_deletes_it_if_told_to(project, capsys):
    before = states(project)
    assert before == {"current": 2 * len(LADDER), "superseded": 1, "interrupted": 1, "foreign": 1}
    for arguments in ((), ("--dry-run",)):
        assert main(["prune", "--uri", project.uri, *arguments]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines[:-1]] == ["superseded", "interrupted"]
        assert re.search(r"unknown/h200-2026-11-20-1a2b3c4-[0-9a-f]{16}/h200/sgemm/naive", lines[0])
        assert lines[-1].endswith("2 runs would be deleted; repeat with --yes to delete them")
    assert states(project) == before
    assert main(["prune", "--uri", project.uri, "--yes"]) == 0
    assert "2 runs deleted" in capsys.readouterr().out
    assert states(project) == {"current": 2 * len(LADDER), "foreign": 1}


def test_current_runs_are_deleted_only_with_a_filter(project, capsys):
    before = states(project)
    assert main(["prune", "--uri", project.uri, "--current", "--yes"]) == 1
    assert "name --campaign, --family or --origin" in capsys.readouterr().err
    assert states(project) == before
    main(["prune", "--uri", project.uri, "--current", "--campaign", "h200-later", "--yes"])
    assert states(project)["current"] == len(LADDER)
    assert {run.data.tags["campaign"] for run in project.current()} == {CAMPAIGN.campaign}


def test_a_store_that_does_not_exist_is_not_created(tmp_path, capsys):
    assert main(["prune", "--uri", f"sqlite:///{tmp_path}/none.db"]) == 1
    assert "no such store" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
