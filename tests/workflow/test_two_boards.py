"""The live workflow on a machine with two boards, of which the CPU pretends to be both."""

import os
import shutil
import uuid
from pathlib import Path

import pandas as pd
import pytest

import snakemake_runs
from copied_project import copy_project
from host_family import REFERENCE, YAML, pretended_path
from warplog.records.check import Check
from warplog.records.family_file import FamilyRecord
from warplog.records.stages import folder_of
from warplog.records.time import Time

PROJECT = Path(__file__).parents[2]
CONFIG = (
    *("kernel_folders=[host]", "families=scale,twice,thrice", "campaign=host"),
    'profile={"ncu": false, "nsys": false}',
    'time={"processes": 2, "most_processes": 1, "max_samples": 10, "max_seconds": 0.2, "hot_seconds": 0.001}',
)
RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
FAMILIES = ("scale", "twice", "thrice")
BOARDS = [f"GPU-{uuid.uuid4()}" for _ in range(2)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a project with three families of C functions."""
    place = tmp_path_factory.mktemp("boards")
    copy_project(place, families=("oracle",))
    (place / "site").mkdir()
    shutil.copy(PROJECT / "tests" / "workflow" / "pretended_gpu.py", place / "site" / "sitecustomize.py")
    for name in FAMILIES:
        family = place / "host" / name
        family.mkdir(parents=True)
        text = YAML.replace("family: scale", f"family: {name}").rstrip()
        (family / "family.yaml").write_text(text + "\n  - {name: same, parent: right, idea: the same}\n")
        (family / "reference.py").write_text(REFERENCE)
        (family / "right.cu").write_text(RIGHT)
        # The first launch of the worker kills it, as `kill -9` from outside does.
        once = f'if (access("{place}/{name}.killed", F_OK)) {{ fclose(fopen("{place}/{name}.killed", "w"));'
        (family / "same.cu").write_text(f"{once} kill(getpid(), SIGKILL); }} {RIGHT}")
    return place


def snakemake(place: Path, **variables: str) -> str:
    environment = {
        k: v for k, v in os.environ.items() if k not in ("MLFLOW_TRACKING_URI", "CUDA_VISIBLE_DEVICES")
    }
    environment["PYTHONPATH"] = pretended_path(place)  # its package equals that of the copy
    environment |= {"PRETENDED_BOARDS": ",".join(BOARDS), **variables}
    options = ("tables", "--cores", "3", "--nocolor")
    done = snakemake_runs.run(place, *options, "--config", "gpu=all", *CONFIG, environment=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    return done.stdout + done.stderr


def boards(place: Path, kind: type[Check] | type[Time] = Time) -> dict[str, set[str]]:
    """Returns the boards that each family was measured on in a stage."""
    files = {name: place / "results" / folder_of(kind) / "host" / f"{name}.json" for name in FAMILIES}
    return {
        name: {one.provenance.gpu_uuid for one in FamilyRecord.read(file, kind).variants.values()}
        for name, file in files.items()
    }


def test_each_board_measures_whole_families_and_every_row_names_its_board(place: Path) -> None:
    assert "each family is measured on one of 2 boards" in snakemake(place)
    assert sorted(map(len, boards(place).values())) == [1, 1, 1]
    assert set().union(*boards(place).values()) == set(BOARDS)
    assert boards(place, Check) == boards(place)
    table = pd.read_parquet(place / "results/tables/measurements.parquet")
    named = {family: set(rows["board"]) for family, rows in table.groupby("family")}
    assert named == boards(place)
    assert "Nothing to be done" in snakemake(place)


def test_after_a_worker_was_killed_its_board_measures_on(place: Path) -> None:
    for name in FAMILIES:
        assert (place / f"{name}.killed").exists()
        record = FamilyRecord.read(place / "results/time/host" / f"{name}.json", Time)
        assert {one.status for one in record.variants.values()} == {"ok"}


def test_a_lost_boards_families_are_timed_again_on_the_one_that_is_left(place: Path) -> None:
    for name in FAMILIES:
        (place / "host" / name / "same.cu").write_text(RIGHT)
    snakemake(place, LOST_BOARDS=BOARDS[1])
    assert boards(place) == {name: {BOARDS[0]} for name in FAMILIES}
