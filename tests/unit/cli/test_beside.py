"""Finished runs of several GPUs side by side: a page and figures with both, and refusals that name the remedy."""

import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from warplog.cli import main
from warplog.records.verification import manifest

PROJECT = Path(__file__).parents[3]
RECORDED = PROJECT / "results" / "recorded"
OURS, THEIRS = "h200", "made-up-gpu"
FAMILY = "overlap"


@cache
def tables_of(family):
    read = {path.name: pd.read_parquet(path) for path in (RECORDED / OURS / "tables").glob("*.parquet")}
    return {
        name: table[table["family"] == family] if "family" in table else table for name, table in read.items()
    }


def make(folder, gpu, family=FAMILY):
    """Writes the tables of one family of the recorded H200 campaign, as if they were those of another GPU's run."""
    (folder / "tables").mkdir(parents=True)
    for name, table in tables_of(family).items():
        changed = {"gpu": gpu, "gpu_name": gpu.upper(), "campaign": f"made-up-{gpu}"}
        table.assign(**{key: changed[key] for key in changed if key in table}).to_parquet(
            folder / "tables" / name
        )
    return folder


def printed(capsys, *arguments):
    status = main.main(["beside", *map(str, arguments)])
    return status, *capsys.readouterr()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A project with a recorded campaign, a finished run with pages, and one without."""
    place = tmp_path_factory.mktemp("project")
    (place / "kernels").symlink_to(PROJECT / "kernels")
    recorded = make(place / "results" / "recorded" / OURS, OURS)
    manifest.write(recorded, f"made-up-{OURS}", "")
    (make(place / "b" / "results", THEIRS) / "worklog").mkdir()
    (place / "b" / "results" / "worklog" / f"{FAMILY}.html").write_text("a page")
    make(place / "c" / "results", "third-gpu")
    return place


def links(page):
    return set(re.findall(r'href="([^"#]*)', page.read_text()))


def test_page_and_figure_show_both_runs_and_lead_to_the_pages_of_each(runs, capsys, monkeypatch):
    monkeypatch.chdir(runs)
    status, out, _ = printed(capsys, OURS, "b/results")
    folder = runs / "results" / "beside"
    assert (status, out) == (0, "open results/beside/index.html\n")
    page = folder / "index.html"
    text = page.read_text()
    assert f"<h1>{OURS} beside {THEIRS}</h1>" in text
    assert links(page) == {f"../../b/results/worklog/{FAMILY}.html"}
    assert all((folder / link).is_file() for link in links(page))
    assert not re.search("FASTER|SLOWER|SAME|AMBIGUOUS", text)
    rows = pd.read_csv(folder / f"{FAMILY}.csv")
    assert list(rows.groupby("variant", sort=False)["gpu"].agg(list).iloc[0]) == [OURS, THEIRS]
    assert rows["value"].notna().all()
    assert dict(zip(rows["gpu"], rows["origin"], strict=True)) == {OURS: "recorded", THEIRS: "live"}
    svg = (folder / f"{FAMILY}.svg").read_text()
    assert OURS.upper() in svg
    assert THEIRS.upper() in svg
    assert (folder / f"{FAMILY}.png").stat().st_size > 1000


def test_the_steps_of_a_first_run_with_html_pages_lead_to_their_place_in_these(runs, capsys, monkeypatch):
    monkeypatch.chdir(runs)
    printed(capsys, "b/results", OURS, "--output", "elsewhere/page")
    text = (runs / "elsewhere" / "page" / "index.html").read_text()
    assert f'<a href="../../b/results/worklog/{FAMILY}.html#rung-four_streams">' in text


def test_three_runs_are_each_set_beside_the_first_and_one_without_pages_has_no_links(
    runs, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(runs)
    assert printed(capsys, "c/results", OURS, "b/results", "--output", tmp_path)[0] == 0
    text = (tmp_path / "index.html").read_text()
    assert f"third-gpu beside {OURS} beside {THEIRS}</h1>" in text
    assert f": third-gpu beside {THEIRS}</h2>" in text
    assert {Path(link).name for link in links(tmp_path / "index.html")} == {f"{FAMILY}.html"}


@pytest.mark.parametrize("name", ["nowhere", "b"])
def test_a_run_that_is_missing_or_has_no_tables_is_named_with_the_command_that_makes_them(
    runs, capsys, monkeypatch, name
):
    monkeypatch.chdir(runs)
    status, _, error = printed(capsys, OURS, name)
    assert status == 1
    assert error == (
        f"error: {name}: neither a results folder with tables nor a recorded campaign (recorded: {OURS});"
        " `warplog run -- tables` makes the tables, with --directory FOLDER those in FOLDER/results\n"
    )


def test_two_runs_of_one_gpu_are_refused_with_the_command_that_compares_them(runs, capsys, monkeypatch):
    monkeypatch.chdir(runs)
    make(runs / "again" / "results", THEIRS)
    status, _, error = printed(capsys, "b/results", OURS, "again/results")
    assert status == 1
    assert error == (
        f"error: b/results and again/results: both are of the GPU {THEIRS}; compare them:"
        " `warplog compare b/results again/results`\n"
    )


def test_runs_without_a_common_family_are_refused(runs, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(runs)
    make(tmp_path / "other", "fourth-gpu", "transfer")
    assert "no family is in two of these runs" in printed(capsys, OURS, tmp_path / "other")[2]


def test_a_hostile_name_of_a_family_stays_in_the_folder_and_is_text_on_the_page(
    runs, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(runs)
    for name, gpu in (("x", "gpu-x"), ("y", "gpu-y")):
        for path in (make(tmp_path / name, gpu) / "tables").glob("*.parquet"):
            table = pd.read_parquet(path)
            if "family" in table:
                table.assign(family="../../<b>$x").to_parquet(path)
    assert (
        printed(capsys, tmp_path / "x", tmp_path / "y", "--output", tmp_path / "deep" / "er" / "page")[0] == 0
    )
    assert not list(tmp_path.glob("*.csv"))
    page = tmp_path / "deep" / "er" / "page"
    assert {path.name for path in page.iterdir()} == {
        "index.html",
        *(f"-------b--x.{s}" for s in ("png", "svg", "csv")),
    }
    assert "<b>" not in (page / "index.html").read_text()
