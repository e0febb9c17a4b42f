"""The main command on a machine without a GPU: the recorded campaign becomes tables, figures and MLflow runs."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from warplog import toolchain
from warplog.catalog import load

PROJECT = Path(__file__).parents[2]
SNAKEMAKE = (sys.executable, "-m", "snakemake", "--cores", "2", "--nocolor", "--config", "mode=recorded")
RECORDED = PROJECT / "results" / "recorded" / "h200"

pytestmark = pytest.mark.nvcc


def snakemake(place: Path, *arguments: str) -> str:
    command = [*SNAKEMAKE[:5], *arguments, *SNAKEMAKE[5:]]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment["PYTHONPATH"] = str(place / "workflow")  # the clone's package, not ours
    environment.pop("MLFLOW_TRACKING_URI", None)
    done = subprocess.run(
        command, cwd=place, capture_output=True, text=True, check=False, timeout=230, env=environment
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which the main command ran once."""
    toolchain.ensure("cuda")
    place = tmp_path_factory.mktemp("clone")
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("workflow", "kernels", "config", "profiles"):
        shutil.copytree(PROJECT / name, place / name, ignore=ignore)
    shutil.copytree(RECORDED, place / "results" / "recorded" / "h200")
    shutil.copy(PROJECT / "Snakefile", place)
    said = snakemake(place)
    (place / "said.txt").write_text(said)
    return place


def measurements(place: Path) -> pd.DataFrame:
    return pd.read_parquet(place / "results" / "tables" / "measurements.parquet")


def test_says_in_one_line_that_it_uses_the_recorded_campaign(place: Path) -> None:
    said = [
        line
        for line in (place / "said.txt").read_text().splitlines()
        if "using the recorded campaign" in line
    ]
    assert said
    assert "NVIDIA H200" in said[0]
    assert "commit" in said[0]


def test_tables_hold_the_recorded_numbers_and_say_so(place: Path) -> None:
    table = measurements(place)
    assert set(table["origin"]) == {"recorded"}
    recorded = pd.read_csv(RECORDED / "tables" / "measurements.csv", keep_default_na=False)
    assert set(recorded["origin"]) == {"live"}
    kept = ["family", "variant", "case", "status", "median_us", "hot_us", "gflops"]
    pd.testing.assert_frame_equal(
        table[kept].reset_index(drop=True).astype(object).astype(str),
        recorded[kept].assign(case=recorded["case"].astype(str)).astype(object).astype(str),
    )


def test_builds_are_live(place: Path) -> None:
    metrics = pd.read_parquet(place / "results" / "tables" / "metrics.parquet")
    built = metrics[metrics["tool"].isin(["ptxas", "cuobjdump"])]
    assert set(built["origin"]) == {"live"}
    assert {"naive", "warptile"} <= set(built["variant"])
    assert set(metrics[metrics["tool"] == "ncu"]["origin"]) == {"recorded"}


def test_claims_are_judged(place: Path) -> None:
    rows = pd.read_parquet(place / "results" / "tables" / "claims.parquet").set_index("id")
    assert rows.loc["B1", "verdict"] == "confirmed"
    assert rows.loc["B17", "verdict"] == "refuted"
    assert rows.loc["D20", "verdict"] == "confirmed", (
        "the first launch is in the records, if not in the tables"
    )
    assert set(rows["origin"]) == {"recorded"}
    columns = pd.read_csv(place / "results" / "tables" / "columns.csv")
    assert set(columns.loc[columns["table"] == "claims", "column"]) == {"id", *rows.columns}


def test_every_figure_has_its_three_files(place: Path) -> None:
    figures = place / "results" / "figures" / "sgemm"
    special = {name for family in load([place / "kernels"]).values() for name in family.figures}
    names = {p.stem for p in (place / "workflow" / "scripts" / "figures").glob("*.py")} - special
    assert {p.name for p in figures.iterdir()} == {f"{n}.{s}" for n in names for s in ("png", "svg", "csv")}
    for path in figures.glob("*.svg"):
        text = path.read_text()
        assert "NVIDIA H200" in text, path
        assert "recorded" in text, path


def test_every_family_has_its_worklog_and_what_others_printed(place: Path) -> None:
    folder = place / "results" / "worklog"
    assert {p.name for p in folder.iterdir()} == {"sgemm.html", "sgemm.md", "sgemm.tex"}
    assert "recorded" in (folder / "sgemm.md").read_text()
    table = pd.read_parquet(place / "results" / "tables" / "published.parquet")
    printed = table[table["published"].notna()]
    assert {"naive", "warptile", "cublas"} <= set(printed["variant"])
    assert set(printed["published_source"]) > {"S. Boehm, How to optimize a CUDA matmul kernel"}


def test_mlflow_runs_equal_the_tables(place: Path) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{place}/results/mlflow.db")
    experiment = next(e for e in client.search_experiments() if "sgemm" in e.name)
    runs = client.search_runs([experiment.experiment_id])
    table = measurements(place)
    assert len(runs) == table["variant"].nunique()
    for run in runs:
        assert run.data.tags["origin"] == "recorded"
        rows = table[table["variant"] == run.data.tags["variant"]]
        points = {m.step: m.value for m in client.get_metric_history(run.info.run_id, "perf/gflops")}
        assert points == pytest.approx(dict(zip(rows["size"], rows["gflops"], strict=True)))


def test_second_run_does_nothing(place: Path) -> None:
    assert "Nothing to be done" in snakemake(place)


def test_killed_run_goes_on_where_it_stopped(place: Path, tmp_path: Path) -> None:
    copy = tmp_path / "killed"
    for name in ("workflow", "kernels", "config", "profiles"):
        shutil.copytree(place / name, copy / name)
    shutil.copytree(place / "results" / "recorded", copy / "results" / "recorded")
    shutil.copy(place / "Snakefile", copy)
    builds = copy / "results" / "build" / "sm_90" / "sgemm"
    command = [*SNAKEMAKE[:5], "build", *SNAKEMAKE[5:]]
    environment = {**os.environ, "PYTHONPATH": str(copy / "workflow")}
    running = subprocess.Popen(
        command, cwd=copy, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while len(list(builds.glob("*/record.json"))) < 4:
        assert running.poll() is None
        time.sleep(0.02)
    running.kill()
    running.wait()
    done = {path: path.stat().st_mtime_ns for path in builds.glob("*/record.json")}
    assert len(done) < 8
    said = snakemake(copy, "build")
    assert len(list(builds.glob("*/record.json"))) == 8
    finished = [path for path, changed in done.items() if path.stat().st_mtime_ns == changed]
    assert finished, said


def test_lost_store_is_filled_again(place: Path) -> None:
    (place / "results" / "mlflow.db").unlink()
    said = snakemake(place)
    assert (place / "results" / "mlflow.db").is_file()
    assert "log_mlflow" in said
    assert "draw_figure" not in said


def test_edited_source_does_not_pass_for_the_recorded_one(place: Path) -> None:
    path = place / "kernels" / "sgemm" / "naive.cu"
    path.write_text(path.read_text() + "\n// edited\n")
    snakemake(place, "tables")
    table = measurements(place)
    reasons = table[table["variant"] == "naive"]["reason"]
    assert all("earlier source" in r for r in reasons)
    assert not any("earlier version" in r for r in table[table["variant"] != "naive"]["reason"])
