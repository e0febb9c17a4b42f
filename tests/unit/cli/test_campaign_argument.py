"""The argument that names a campaign: the same for every command, in a checkout and in a repository of kernels."""

import shutil
from pathlib import Path

import pytest

from small_campaign import FOLDER as SMALL
from warplog.cli import main

PROJECT = Path(__file__).parents[3]
READERS = ("explain", "claims", "published")


@pytest.fixture
def repository(tmp_path, monkeypatch, request):
    """The root of a repository with kernels in warplog/ and a recorded campaign; the working directory is the root."""
    place = tmp_path / "warplog"
    shutil.copytree(PROJECT / "kernels" / "transpose", place / "kernels" / "transpose")
    (place / "kernels" / "include").symlink_to(PROJECT / "kernels" / "include")
    (place / "results" / "recorded").mkdir(parents=True)
    (place / "results" / "recorded" / "h200").symlink_to(SMALL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(capsys, *arguments):
    status = main.main(list(arguments))
    return status, *capsys.readouterr()


@pytest.mark.parametrize("command", READERS)
def test_readers_take_a_recorded_name_a_campaigns_folder_and_its_tables(repository, capsys, command):
    folder = "warplog/results/recorded/h200"
    outputs = [
        printed(capsys, command, name, "--family", "transpose")
        for name in ("h200", folder, f"{folder}/tables", "results/recorded/h200")
    ]
    assert outputs[0][0] == 0
    assert outputs[0][1]
    assert all(output == outputs[0] for output in outputs)


@pytest.mark.parametrize(
    ("command", "missing", "target"),
    [
        *((reader, ".parquet: no such table", "tables") for reader in READERS),
        ("figures", "measurements.parquet: no such table", "tables"),
        ("audit", "worklog: no pages", "worklog"),
    ],
)
def test_from_the_root_of_a_repository_a_remedy_is_a_command_that_works_there(
    repository, capsys, command, missing, target
):
    status, _, error = printed(capsys, command)
    assert status == 1
    assert f"{repository}/warplog/results/" in error
    assert missing in error
    assert f"run `warplog run -- {target}`" in error


def test_every_command_with_a_campaign_refuses_an_unknown_one_alike(repository, capsys):
    commands = [*([reader] for reader in READERS), ["audit"], ["verify"], ["best-of", "transpose"]]
    for command in (*commands, ["figures", "--campaign"], ["compare", "h200"]):
        status, _, error = printed(capsys, *command, "h20")
        assert (status, error) == (1, "error: h20: no such folder or recorded campaign (recorded: h200)\n")


def test_a_family_in_place_of_a_campaign_is_explained(repository, capsys):
    _, _, error = printed(capsys, "explain", "transpose")
    assert error == (
        "error: transpose: is a family, not a campaign; use `warplog explain --family transpose`\n"
    )


def test_verify_takes_a_recorded_name(repository, capsys):
    status, out, _ = printed(capsys, "verify", "h200")
    assert status == 0
    assert "consistent records" in out


def test_figures_are_listed_of_a_recorded_campaign(repository, capsys):
    status, out, _ = printed(capsys, "figures", "--campaign", "h200", "--list")
    assert status == 0
    assert "transpose/ladder" in out.split()
