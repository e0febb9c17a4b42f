"""Campaigns through a real SLURM (tests/cluster/up.sh), with the GPU stages replayed from the recorded campaign."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from cluster import slurm_controller

from copied_project import copy_project
from replayed_stage import replay
from warplog.plan import cluster

PROJECT = Path(__file__).parents[2]
MODELS = {"h200": "h200", "h100-80gb-hbm3": "h100"}  # slug of the GPU and its type in SLURM
FAMILIES = "vector_add,transpose"
FEW = "variants=float4,naive"
LONGEST_S = 1500
SLURM_ROOT = Path(os.environ.get("SLURM_ROOT", "/tmp/warplog-slurm"))


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
    """Returns a copy of the project that replays its recorded campaign; skips without a cluster."""
    if reason := why_not():
        pytest.skip(reason)
    place = copy_project(tmp_path_factory.mktemp("cluster"))
    shutil.copytree(PROJECT / "results/recorded/h200", place / "results/recorded/h200")
    replay(place)
    return place


def campaign(place: Path, name: str, *config: str, more: Sequence[str] = ()) -> "subprocess.Popen[str]":
    """Starts a run in the folder `name`; `more` are further options of Snakemake."""
    environment = os.environ | {"PYTHONPATH": str(place / "workflow")}
    options = [
        *("--snakefile", place / "Snakefile", "--directory", place / name),
        *("--workflow-profile", place / "profiles/slurm", "--slurm-status-command", "squeue"),
        *("--default-resources", "slurm_account=root", "slurm_partition=cpu", "mem_mb=1000", "runtime=20"),
        *("--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "2"),
        *("--group-components", "builds=2", "--set-threads", "time_family=1", "--latency-wait", "20"),
        *("tables", "--config", "mode=live", *config),
        *more,
    ]
    (place / name).mkdir()
    log = (place / name / "output").open("w")
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
    runs = {gpu: campaign(place, gpu, f"gpu={gpu}", f"families={FAMILIES}", FEW) for gpu in MODELS}
    running = runs["h200"]
    results = place / "h200" / "results"
    until(lambda: bool(slurm("squeue", "-h", "-t", "running", "-o", "%i").split()), running)
    slurm("scancel", slurm("squeue", "-h", "-t", "running", "-o", "%i").split()[0])
    slurm("scontrol", "update", "nodename=b", "state=drain", "reason=test")
    until(lambda: (results / "check" / "h200" / "transpose.json").is_file(), running)
    slurm("scontrol", "update", "nodename=b", "state=resume")
    recorded = pd.read_parquet(PROJECT / "results/recorded/h200/tables/measurements.parquet")
    key = ["family", "variant", "case"]
    numbers = recorded.set_index(key)["median_us"]
    for gpu, run in runs.items():
        assert run.wait(LONGEST_S) == 0, (place / gpu / "output").read_text()[-6000:]
        table = pd.read_parquet(place / gpu / "results/tables/measurements.parquet").set_index(key)
        assert set(table["gpu"]) == {gpu}
        assert set(table["campaign"]) == {f"replayed-{gpu}"}
        assert (table["status"] == "ok").all(), table["reason"]
        assert (table["median_us"] == numbers.reindex(table.index)).all()


@dataclass(frozen=True)
class Submitted:
    """A job of the run's only family that SLURM knows."""

    number: str
    state: str
    restarts: int


def gpu_groups() -> list[Submitted]:
    """Returns the jobs that measure the family, in the order in which they were submitted."""
    listed = slurm("squeue", "-h", "-t", "all", "-O", "JobID:|,State:|,RestartCnt:|,Comment:200").splitlines()
    found = [line.split("|") for line in listed if "check_family" in line]
    return [
        Submitted(number.strip(), state.strip(), int(count))
        for number, state, count, _ in sorted(found, key=lambda line: int(line[0]))
    ]


def cancel(job: str) -> None:
    slurm("scancel", job)


def let_time_out(job: str) -> None:
    slurm("scontrol", "update", f"jobid={job}", "timelimit=1")
    slurm("scancel", "--signal=STOP", "--full", job)


def pre_empt(_job: str) -> None:
    slurm(
        "sbatch",
        "-p",
        "urgent",
        "--gpus=h100:1",
        "--mem=100",
        "--time=1",
        "--output=/dev/null",
        "--wrap",
        "sleep 2",
    )


def queue_again(job: str) -> None:
    slurm("scontrol", "requeue", job)


@pytest.mark.parametrize(
    ("name", "disturb", "state"),
    [
        ("cancelled", (cancel, let_time_out), ("CANCELLED", "TIMEOUT", "COMPLETED")),
        ("preempted", (pre_empt, queue_again), ("PREEMPTED", "COMPLETED")),
    ],
)
def test_a_job_that_measures_is_submitted_again_however_slurm_ended_it(
    place: Path, name: str, disturb: tuple[Callable[[str], None], ...], state: tuple[str, ...]
) -> None:
    before = {job.number for job in gpu_groups()}
    running = campaign(place, name, "gpu=h100-80gb-hbm3", "families=vector_add", "variants=float4")

    def jobs() -> list[Submitted]:
        return [job for job in gpu_groups() if job.number not in before]

    disturbed: set[str] = set()
    for end in disturb:
        until(lambda: any(job.state == "RUNNING" and job.number not in disturbed for job in jobs()), running)
        last = jobs()[-1].number
        disturbed.add(last)
        end(last)
    assert running.wait(LONGEST_S) == 0, (place / name / "output").read_text()[-6000:]
    assert tuple(job.state for job in jobs()) == state
    assert jobs()[-1].restarts == (queue_again in disturb)
    table = pd.read_parquet(place / name / "results" / "tables" / "measurements.parquet")
    assert set(table["status"]) == {"ok"}


@pytest.mark.usefixtures("place")
def test_a_queue_that_stands_still_is_told_with_slurms_reason() -> None:
    name = f"held-{os.getpid()}"
    job = slurm(
        "sbatch", "--parsable", "--hold", "-p", "cpu", "--job-name", name, "-o", "/dev/null", "--wrap", "true"
    ).strip()
    told: list[str] = []
    ended = cluster.watch(name, told.append, still_s=1, every_s=0.2)
    while not told:  # the time limit of the test ends it
        time.sleep(0.1)
    ended.set()
    cancel(job)
    assert told == ["SLURM, nothing new for 0.0167 minutes: 1 of this run's jobs wait: JobHeldUser"]


def test_a_controller_that_is_gone_for_a_minute_does_not_end_the_run(place: Path) -> None:
    running = campaign(place, "gone", "gpu=h200", "families=vector_add", "variants=float4")
    until(lambda: any(job.state == "RUNNING" for job in gpu_groups()), running)
    os.kill(int((SLURM_ROOT / "ctld.pid").read_text()), signal.SIGTERM)
    time.sleep(60)
    subprocess.run(["slurmctld"], check=True, timeout=60)
    assert running.wait(LONGEST_S) == 0, (place / "gone" / "output").read_text()[-6000:]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--group-components", "builds=64"), "build_variant: a job asks for"),
        (("--slurm-status-command", "sacct"), "set slurm-status-command: squeue"),
        (("--slurm-array-jobs", "all"), "slurm-array-jobs: 'all'"),
    ],
)
def test_a_run_that_would_wait_for_ever_is_refused_in_one_line(
    place: Path, more: tuple[str, ...], words: str
) -> None:
    name = more[0].strip("-")
    running = campaign(place, name, "gpu=h200", "families=vector_add,transpose", more=more)
    assert running.wait(LONGEST_S) == 1
    output = (place / name / "output").read_text()
    assert [words in line for line in output.splitlines() if line.startswith("error: ")] == [True], output
    assert "has been submitted" not in output
