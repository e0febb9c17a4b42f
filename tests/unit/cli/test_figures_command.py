"""`warplog figures`: draws single figures from the tables in the style of a document, without a run of the workflow."""

import re

import pandas as pd
import pytest
from PIL import Image

import made_up_mechanisms
from figure_tables import FEW, sgemm
from made_up_tables import write
from traced_tables import TRANSPOSE, shipped, write_traced
from warplog.cli.main import main


@pytest.fixture
def project(tmp_path, monkeypatch, request):
    """A project with made-up tables of sgemm and the families of this repository; the working directory is another."""
    write(sgemm(names=FEW), tmp_path / "results" / "tables")
    (tmp_path / "Snakefile").touch()
    (tmp_path / "kernels").symlink_to(request.config.rootpath / "kernels")
    (tmp_path / "notes").mkdir()
    monkeypatch.chdir(tmp_path / "notes")
    return tmp_path


def run(capsys, *arguments):
    status = main(["figures", *arguments])
    out, err = capsys.readouterr()
    return status, out.splitlines(), err


def test_one_figure_is_drawn_in_the_style_and_width_of_an_article(project, capsys):
    status, files, _ = run(capsys, "sgemm/ladder", "--style", "paper", "--width", "3.3", "-o", "drawn")
    assert status == 0
    assert files == [f"drawn/sgemm-ladder.{suffix}" for suffix in ("pdf", "svg", "png", "txt", "csv")]
    folder = project / "notes" / "drawn"
    assert (
        float(re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", (folder / "sgemm-ladder.pdf").read_bytes())[1])
        == 237.6
    )
    numbers = pd.read_csv(folder / "sgemm-ladder.csv").set_index("variant")
    assert numbers.loc["warptile", "percent"] == pytest.approx(100 * 36267 / 51200, rel=1e-3)


def test_several_figures_and_one_format(project, capsys):
    _, files, _ = run(capsys, "sgemm/ladder", "sgemm/occupancy", "sgemm/ladder", "--format", "svg", "-o", "x")
    assert files == [
        f"x/sgemm-{name}" for name in ("ladder.svg", "ladder.csv", "occupancy.svg", "occupancy.csv")
    ]


def test_list_names_the_figures_of_the_families_in_the_tables_and_draws_none(project, capsys):
    status, names, _ = run(capsys, "--list")
    assert status == 0
    assert {"sgemm/ladder", "sgemm/roofline", "sgemm/memory_chart"} <= set(names)
    assert all(name.startswith("sgemm/") for name in names)
    assert not (project / "notes" / "figures").exists()


def test_a_figure_of_one_variant_is_named_with_it(project, capsys, tmp_path):
    write_traced(shipped(tmp_path, "transpose", TRANSPOSE), project / "results" / "tables")
    _, names, _ = run(capsys, "--list")
    assert {"transpose/lanes_over_banks", "transpose/lanes_over_banks@padded"} <= set(names)
    assert "transpose/lanes_over_banks@naive" not in names
    _, files, _ = run(capsys, "transpose/lanes_over_banks@padded", "--format", "svg", "-o", "x")
    assert files == [f"x/transpose-lanes_over_banks@padded.{suffix}" for suffix in ("svg", "csv")]


def test_settings_of_the_project_apply_and_options_replace_them(project, capsys):
    (project / "config").mkdir()
    (project / "config" / "config.yaml").write_text(
        "figures: {style: paper, width_in: 5.0, formats: [png]}\n"
    )
    run(capsys, "sgemm/ladder")
    run(capsys, "sgemm/ladder", "--width", "4", "--titles", "-o", "other")
    widths = {}
    for name in ("figures", "other"):
        with Image.open(project / "notes" / name / "sgemm-ladder.png") as image:
            widths[name] = image.width / 200
    assert widths == {"figures": 5.0, "other": 4.0}
    assert not (project / "notes" / "other" / "sgemm-ladder.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sgemm/lader"], "sgemm/lader: no such figure here; did you mean 'sgemm/ladder'?"),
        (["gemm"], "gemm: no such family here; did you mean 'sgemm'?"),
        (["sgemm/ladder", "--width", "1"], "options: figures.width_in: 1.0 is less than the minimum of 3"),
        (
            ["sgemm/ladder", "--style", "papr"],
            "options: figures.style: 'papr' is not one of dark, paper, web",
        ),
        (
            ["sgemm/ladder", "--format", "gif"],
            "options: figures.formats.0: 'gif' is not one of pdf, png, svg",
        ),
        (
            ["sgemm/ladder", "--font", "DejaVu Sanz"],
            "'DejaVu Sanz' is not installed; did you mean 'DejaVu Sans'?",
        ),
        (["--campaign", "nowhere"], "nowhere: no such folder or recorded campaign"),
    ],
)
def test_what_cannot_be_drawn_is_an_error_with_its_remedy(project, capsys, arguments, message):
    status, files, error = run(capsys, *arguments)
    assert (status, files) == (1, [])
    assert message in error
    assert not (project / "notes" / "figures").exists()


def test_the_savings_of_all_steps_are_drawn_by_their_name(project, capsys):
    rows = made_up_mechanisms.table(made_up_mechanisms.REASONS, gpu_name="GPU", origin="live", campaign="c")
    rows.to_parquet(project / "results" / "tables" / "mechanisms.parquet", index=False)
    assert "predicted_savings" in run(capsys, "--list")[1]
    status, files, _ = run(capsys, "predicted_savings", "--format", "svg", "-o", "x")
    assert (status, files) == (0, ["x/predicted_savings.svg", "x/predicted_savings.csv"])
