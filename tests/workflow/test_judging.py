"""The rules of judge.smk: order of the A/A rounds, files of a run that fails on a regression, history."""

import csv
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import snakemake_runs
from copied_project import PROJECT, copy_project
from made_up_campaigns import dated, make
from small_campaign import FOLDER
from warplog.records.verification import manifest

OPTIONS = ("--cores", "2", "--nocolor")
SMALL = "results/recorded/small"
RECORDED = ("mode=recorded", "recorded=small", "families=sgemm")
LIVE = ("mode=live", "gpu=h200", "families=sgemm,transpose", "variants=naive,warptile")
STUB = """\
from pathlib import Path

for output in snakemake.output:
    Path(output).write_text("{}")
if snakemake.rule in ("check_family", "time_round"):
    names = [dict(snakemake.wildcards).get(key, "all") for key in ("round", "family")]
    with open("order.txt", "a") as file:
        file.write(" ".join([snakemake.rule, *names]) + "\\n")
"""


def run(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROJECT / "workflow"),
    }  # as in the copy, and imported already
    environment.pop("MLFLOW_TRACKING_URI", None)
    return snakemake_runs.run(place, *OPTIONS, *arguments, environment=environment)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Returns a copy of the project with two families and a small recorded campaign."""
    shutil.copytree(FOLDER, tmp_path / SMALL)
    return copy_project(tmp_path, families=("sgemm", "transpose"))


def test_a_regression_fails_the_run_and_keeps_its_files(place: Path) -> None:
    make(place / "base", 1, about=dated(1))
    make(place / "slow", 2, {"warptile": 1.05}, about=dated(2))
    names = (*RECORDED, "baseline=base", "candidate=slow")
    done = run(place, "compare", "--config", *names)
    assert done.returncode == 1
    output = done.stdout + done.stderr
    assert "SLOWER  sgemm/warptile  4096" in output
    assert "verdicts.md: a confirmed regression" in output
    folder = place / "results" / "compare"
    kept = {path.name for path in folder.iterdir()}
    assert kept == {"verdicts.json", "verdicts.csv", "verdicts.md", "ratios.png", "ratios.svg"}
    assert json.loads((folder / "verdicts.json").read_text())["status"] == 1

    make(place / "slow", 2, about=dated(2))  # fixed: different records under the same name
    done = run(place, "compare", "--config", *names)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 certain to be SLOWER" in done.stdout + done.stderr
    assert "compare_campaigns" not in run(place, "compare", "-n", "--config", *names).stdout


def test_rounds_are_timed_in_alternating_order_after_all_checks(place: Path) -> None:
    for script in (place / "workflow" / "scripts").rglob("*.py"):
        script.write_text(STUB)
    done = run(place, "aa", "--config", *LIVE, 'aa={"rounds": 3}')
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in (place / "order.txt").read_text().splitlines()]
    assert sorted(lines[:2]) == [["check_family", "all", family] for family in ("sgemm", "transpose")]
    forward = ["sgemm", "transpose"]
    expected = [(number, f) for number in "123" for f in (forward if number != "2" else forward[::-1])]
    assert [(number, family) for _, number, family in lines[2:]] == expected
    assert (place / "results" / "aa" / "round2" / "time" / "h200" / "sgemm.json").is_file()
    assert not (place / "results" / "time").exists()

    source = place / "kernels" / "sgemm" / "warptile.cu"  # an edited kernel repeats all rounds
    source.write_text(source.read_text() + "\n// edited\n")
    assert run(place, "aa", "--config", *LIVE, 'aa={"rounds": 3}').returncode == 0
    again = [line.split() for line in (place / "order.txt").read_text().splitlines()][len(lines) :]
    assert [rule for rule, *_ in again].count("check_family") == 1
    assert [(number, family) for rule, number, family in again if rule == "time_round"] == expected


def test_recorded_rounds_are_judged_without_a_gpu(place: Path) -> None:
    about = json.loads((place / SMALL / "campaign" / "h200.json").read_text())
    shutil.rmtree(place / SMALL / "aa")
    manifest.write(place / SMALL, about["campaign"], about["commit"])
    done = run(place, "aa", "--config", *RECORDED)
    assert done.returncode == 1
    assert "run `snakemake aa` on a machine with that GPU" in done.stdout + done.stderr
    for number in (1, 2, 3):
        make(place / SMALL / "aa" / f"round{number}", number)
    manifest.write(place / SMALL, about["campaign"], about["commit"])
    done = run(place, "aa", "--config", *RECORDED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "floor to use:" in done.stderr
    with (place / "results" / "aa" / "floors.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 54


def test_history_is_drawn_from_a_folder_of_campaigns(place: Path) -> None:
    for day in (1, 2, 3):
        make(place / "past" / f"day{day}", day, {"warptile": 1.0 if day < 3 else 0.9}, dated(day))
    done = run(place, "history", "--config", *RECORDED, 'history=["past", "small"]')
    assert done.returncode == 0, done.stdout + done.stderr
    folder = place / "results" / "history"
    assert {path.name for path in folder.iterdir()} == {"sgemm.png", "sgemm.svg", "sgemm.csv"}
    with (folder / "sgemm.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["variant"] == "warptile"]
    assert [row["step"] for row in rows] == ["", "", "FASTER", "SLOWER"]
