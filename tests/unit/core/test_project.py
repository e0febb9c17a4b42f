"""Which folder is the project, and the commands that remedies name there."""

import pytest

from warplog.core import paths


def family(folder):
    (folder / "kernels" / "mine").mkdir(parents=True)
    (folder / "kernels" / "mine" / "family.yaml").touch()
    return folder


def test_the_folder_that_init_wrote_is_found_from_the_root_and_from_inside(tmp_path):
    place = family(tmp_path / "warplog")
    (tmp_path / "Snakefile").touch()  # of another workflow in the same repository
    for here in (tmp_path, place, place / "kernels" / "mine"):
        assert paths.nearest_project(here) == place


def test_a_folder_with_a_snakefile_is_found_from_below(tmp_path):
    (tmp_path / "Snakefile").touch()
    (tmp_path / "deep" / "er").mkdir(parents=True)
    assert paths.nearest_project(tmp_path / "deep" / "er") == tmp_path


def test_without_a_project_it_is_the_folder_itself(tmp_path):
    (tmp_path / "warplog").mkdir()
    assert paths.nearest_project(tmp_path) == tmp_path


@pytest.mark.parametrize(
    ("files", "command", "own"),
    [
        (["warplog/kernels/mine/family.yaml"], "warplog run -- tables", "warplog ui"),
        (["Snakefile"], "snakemake --cores 1 tables", "warplog ui"),
        (["Snakefile", "uv.lock"], "uv run snakemake --cores 1 tables", "uv run warplog ui"),
        (
            ["Snakefile", "uv.lock", "profiles/default/config.yaml"],
            "uv run snakemake tables",
            "uv run warplog ui",
        ),
    ],
)
def test_a_remedy_names_the_command_that_works_in_that_kind_of_project(
    tmp_path, monkeypatch, files, command, own
):
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert (paths.command("tables"), paths.own_command("ui")) == (command, own)
