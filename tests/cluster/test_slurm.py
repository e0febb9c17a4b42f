"""Campaigns through a real SLURM (tests/cluster/up.sh), with the GPU stages replayed from the recorded campaign."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from cluster import slurm_controller

from copied_project import copy_project

PROJECT = Path(__file__).parents[2]
MODELS = {"h200": "h200", "h100-80gb-hbm3": "h100"}  # slug of the GPU and its type in SLURM
FAMILIES = "vector_add,transpose"
FEW = "variants=float4,naive"
LONGEST_S = 1500


def why_not() -> str:
    """Returns why no campaign can run through SLURM here; "" if it can."""
    if find_spec("snakemake_executor_plugin_slurm") is None:
        return "the executor plugin is not installed: uv sync --extra slurm"
    if shutil.which("sinfo") is None:
        return "SLURM is not installed: tests/cluster/up.sh install"
    down = "no test cluster is up: tests/cluster/up.sh up"
    if not slurm_controller.runs():
        return down  # sinfo would wait for it
    nodes = subprocess.run(
        ["sinfo", "-h", "-o", "%G"], capture_output=True, text=True, timeout=60, check=False
    )
    return "" if "h100" in nodes.stdout else down


pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2 * LONGEST_S)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a copy of the project with the recorded campaign; skips without a cluster."""
    if reason := why_not():
        pytest.skip(reason)
    place = copy_project(tmp_path_factory.mktemp("cluster"))
    shutil.copytree(PROJECT / "results/recorded/h200", place / "results/recorded/h200")
    return place


def campaigns(place: Path) -> "subprocess.Popen[str]":
    """Starts a run with a campaign on each model."""
    environment = os.environ | {"WARPLOG_REPLAY": "h200", "PYTHONPATH": str(place / "workflow")}
    options = [
        *("--snakefile", place / "Snakefile", "--directory", place / "run"),
        *("--workflow-profile", place / "profiles/slurm", "--slurm-status-command", "squeue"),
        *("--default-resources", "slurm_account=root", "slurm_partition=cpu", "mem_mb=1000", "runtime=20"),
        *("--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "2"),
        *(
            "--group-components",
            "builds=2",
            "--set-threads",
            "time_family=1",
            "--latency-wait",
            "20",
            "tables",
        ),
        *("--config", "mode=live", f"gpus={','.join(MODELS)}", f"families={FAMILIES}", FEW),
    ]
    (place / "run").mkdir(exist_ok=True)
    log = (place / "run" / "output").open("w")
    command = [sys.executable, "-m", "snakemake", *map(str, options)]
    return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT, text=True)


def until(what: Callable[[], bool], running: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + LONGEST_S
    while not what():
        assert running.poll() is None, "the campaign ended too early"
        assert time.monotonic() < deadline
        time.sleep(1)


def slurm(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_two_models_are_planned_without_a_gpu_and_survive_a_drained_node_and_a_killed_job(
    place: Path,
) -> None:
    running, results = campaigns(place), place / "run" / "results"
    until(lambda: bool(slurm("squeue", "-h", "-t", "running", "-o", "%i").split()), running)
    slurm("scancel", slurm("squeue", "-h", "-t", "running", "-o", "%i").split()[0])
    slurm("scontrol", "update", "nodename=b", "state=drain", "reason=test")
    until(lambda: (results / "h200" / "check" / "h200" / "transpose.json").is_file(), running)
    slurm("scontrol", "update", "nodename=b", "state=resume")
    assert running.wait(LONGEST_S) == 0, (place / "run" / "output").read_text()[-6000:]
    recorded = pd.read_parquet(PROJECT / "results/recorded/h200/tables/measurements.parquet")
    key = ["family", "variant", "case"]
    numbers = recorded.set_index(key)["median_us"]
    joined = pd.read_parquet(results / "tables" / "measurements.parquet")
    assert list(joined["gpu"].unique()) == list(MODELS)
    for gpu, rows in joined.groupby("gpu"):
        table = rows.set_index(key)
        assert set(table["campaign"]) == {f"replayed-{gpu}"}
        assert (table["status"] == "ok").all(), table["reason"]
        assert (table["median_us"] == numbers.reindex(table.index)).all()
