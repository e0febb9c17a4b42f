"""Two recorded campaigns of different GPUs in one run: joined tables, a figure, a page, and the runs of both."""

import os
import re
from pathlib import Path

import pandas as pd
import pytest

import snakemake_runs
from copied_project import copy_project
from made_up_campaigns import record_as
from warplog.core.columns import TABLES
from warplog.core.defaults import DEFAULTS

PROJECT = Path(__file__).parents[2]
RECORDED = PROJECT / "results" / "recorded" / DEFAULTS["recorded"]
(OURS,) = [path.stem for path in (RECORDED / "campaign").glob("*.json")]
THEIRS = "made-up-gpu"
FAMILY = "overlap"

pytestmark = pytest.mark.timeout(600)


def snakemake(place: Path, *targets: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(place / "workflow")}
    environment.pop("MLFLOW_TRACKING_URI", None)
    config = ["mode=recorded", f"gpus={OURS},{THEIRS}", f"families={FAMILY}"]
    done = snakemake_runs.run(
        place, "--cores", "2", "--nocolor", *targets, "--config", *config, environment=environment
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a clone in which the main command ran for two GPUs, of which one was never measured."""
    place = copy_project(tmp_path_factory.mktemp("clone"), str(RECORDED.relative_to(PROJECT)))
    other = place / "results" / "recorded" / "elsewhere"
    record_as(RECORDED, other, THEIRS, "Made-up GPU", 66, [FAMILY])
    snakemake(place)
    return place


def test_each_gpu_has_a_campaign_with_tables_figures_pages_and_runs(place: Path) -> None:
    for gpu in (OURS, THEIRS):
        own = place / "results" / gpu
        assert (own / "worklog" / f"{FAMILY}.html").is_file()
        assert list((own / "figures" / FAMILY).glob("*.png"))
        assert set(pd.read_parquet(own / "tables" / "measurements.parquet")["gpu"]) == {gpu}


def test_the_joined_tables_hold_the_rows_of_both(place: Path) -> None:
    for name in (*TABLES, "floors", "claims"):
        joined = pd.read_parquet(place / "results" / "tables" / f"{name}.parquet")
        parts = [
            pd.read_parquet(place / "results" / g / "tables" / f"{name}.parquet") for g in (OURS, THEIRS)
        ]
        assert len(joined) == sum(map(len, parts))
        for gpu, part in zip((OURS, THEIRS), parts, strict=True):
            mine = joined[joined["gpu"] == gpu].reset_index(drop=True)
            pd.testing.assert_frame_equal(mine, part, check_dtype=False)


def test_figure_and_page_show_both_and_lead_to_the_pages_of_each(place: Path) -> None:
    results = place / "results"
    rows = pd.read_csv(results / "beside" / f"{FAMILY}.csv")
    assert list(rows.groupby("variant", sort=False)["gpu"].agg(list).iloc[0]) == [OURS, THEIRS]
    assert rows["value"].notna().all()
    svg = (results / "beside" / f"{FAMILY}.svg").read_text()
    assert "NVIDIA H200" in svg
    assert "Made-up GPU" in svg
    page = (results / "beside.html").read_text()
    assert f"<h1>{OURS} beside {THEIRS}</h1>" in page
    links = set(re.findall(r'href="([^"#]+)', page))
    assert {f"{gpu}/worklog/{FAMILY}.html" for gpu in (OURS, THEIRS)} <= links
    assert all((results / link).is_file() for link in links)


def test_mlflow_holds_the_runs_of_both(place: Path) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{place}/results/mlflow.db")
    (experiment,) = [one for one in client.search_experiments() if one.name == f"warplog/{FAMILY}"]
    runs = client.search_runs([experiment.experiment_id])
    variants = {
        gpu: {r.data.tags["variant"] for r in runs if r.data.tags["gpu"] == gpu} for gpu in (OURS, THEIRS)
    }
    assert variants[OURS] == variants[THEIRS]
    assert variants[OURS]


def test_a_second_run_does_nothing(place: Path) -> None:
    assert "Nothing to be done" in snakemake(place)
