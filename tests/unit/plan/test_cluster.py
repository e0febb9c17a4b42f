"""What is checked before jobs go to SLURM, and reported while they wait; scripts stand in for its commands."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from warplog.core.errors import WarplogError
from warplog.plan import cluster
from warplog.plan.cluster import Hardware, Job, Request

SINFO = """
cpu|16|64000|(null)
gpu|64|515000|gpu:h200:4(S:0-1),gpu:h200:4(S:2,3),nvme:1
gpu|32|257000|gpu:2
"""
BUILDS = Request("builds", "cpu", Hardware(8, 20000, {}))
FAMILY = Request("family", "gpu", Hardware(4, 16000, {"h200": 1}))


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Returns a function that puts a script of this name on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def write(name: str, script: str) -> Path:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return write


def printing(text: str) -> str:
    return f"cat <<'END'\n{text.strip()}\nEND"


def until(holds: Callable[[], bool]) -> None:
    while not holds():  # the time limit of the tests ends it
        time.sleep(0.01)


def test_nodes_are_read_with_the_gpus_of_all_sockets(command) -> None:
    command("sinfo", printing(SINFO))
    assert cluster.nodes() == {
        "cpu": [Hardware(16, 64000, {})],
        "gpu": [Hardware(64, 515000, {"h200": 8}), Hardware(32, 257000, {"": 2})],
    }


def test_lines_of_sinfo_that_make_no_sense_are_no_nodes(command) -> None:
    command("sinfo", printing(f"{'9' * 5000}|x\na|b|c|d\nslurm|{'9' * 5000}|1|gpu:{'9' * 5000}\n\x1b[2J"))
    assert cluster.nodes() == {}


def test_jobs_that_fit_a_node_of_their_partition_pass(command) -> None:
    command("sinfo", printing(SINFO))
    any_model = Request("any", "cpu,gpu", Hardware(1, 1, {"": 8}))
    cluster.check_requests(
        [BUILDS, FAMILY, any_model, Request("any", "", Hardware(64, 1, {}))], cluster.nodes()
    )


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (
            Request("builds", "cpu", Hardware(17, 1, {})),
            "builds: a job asks for 17 cores, 1 MB, but the nodes of cpu",
        ),
        (Request("builds", "cpu", Hardware(1, 64001, {})), "have 16 cores, 64000 MB; lower group-components"),
        (
            Request("family", "gpu", Hardware(1, 1, {"h100": 1})),
            "gpu:h100:1, but .* gpu:h200:8 or .*, gpu:2; .*gres",
        ),
        (Request("family", "gpu", Hardware(64, 1, {"": 9})), "64 cores, 1 MB, gpu:9"),
        (
            Request("family", "gpus", Hardware(1, 1, {})),
            "no nodes in a partition 'gpus', only in cpu and gpu",
        ),
    ],
)
def test_a_job_that_fits_no_node_is_one_line_with_what_there_is(command, job: Request, words: str) -> None:
    command("sinfo", printing(SINFO))
    with pytest.raises(WarplogError, match=words) as refused:
        cluster.check_requests([BUILDS, job], cluster.nodes())
    assert "\n" not in str(refused.value)


class Made(SimpleNamespace):
    __hash__ = object.__hash__


def job(name: str, local: bool = False, threads: int = 1, **resources: object) -> Made:
    asked = SimpleNamespace(**resources, get=resources.get)
    return Made(name=name, is_local=local, threads=threads, resources=asked)


def test_what_is_asked_for_is_that_of_groups_and_not_of_jobs_that_stay_here() -> None:
    group = job("family", threads=4, slurm_partition="gpu", mem_mb=16000, gpu=1, gpu_model="h200")
    members = [job("time_family"), job("check_family")]
    single = job("tables", slurm_partition="cpu", mem_mb_per_cpu=500, cpus_per_task=2)
    dag = SimpleNamespace(
        needrun_jobs=lambda: [*members, job("all", local=True), single],
        get_job_group=lambda job: group if job in members else None,
    )
    assert list(cluster.requests(dag)) == [FAMILY, Request("tables", "cpu", Hardware(2, 1000, {}))]


def test_a_status_command_that_does_not_answer_is_one_line_with_the_remedy(command) -> None:
    command("sacct", "echo Slurm accounting storage is disabled >&2; exit 1")
    with pytest.raises(WarplogError, match=r"sacct .* is disabled\); .* set slurm-status-command: squeue"):
        cluster.check_status_command("sacct")
    command("sacct", "")
    cluster.check_status_command("sacct")


def test_squeue_is_refused_where_ended_jobs_are_forgotten_too_soon(command) -> None:
    command("scontrol", "echo 'MinJobAge               = 120 sec'")
    with pytest.raises(WarplogError, match=r"120 s after their end .* set slurm-status-command: sacct"):
        cluster.check_status_command("squeue")
    command("scontrol", "echo 'MinJobAge               = 300 sec'")
    cluster.check_status_command("squeue")
    command("scontrol", "exit 3")
    with pytest.raises(WarplogError, match=r"scontrol does not answer \(exit status 3\)"):
        cluster.check_status_command("squeue")


def test_without_slurm_the_missing_command_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        WarplogError, match="sinfo: No such file or directory; start the run on a node of the"
    ):
        cluster.nodes()


def test_another_executor_is_not_checked() -> None:
    cluster.before_submitting(SimpleNamespace(executor_plugin=SimpleNamespace(name="local")), print)


def test_job_arrays_are_refused_since_groups_cannot_be_any() -> None:
    workflow = SimpleNamespace(
        executor_plugin=SimpleNamespace(name="slurm"),
        executor_settings=SimpleNamespace(array_jobs="all"),
        scheduler=SimpleNamespace(_executor=None),
    )
    with pytest.raises(WarplogError, match=r"slurm-array-jobs: 'all': groups .* remove the setting"):
        cluster.before_submitting(workflow, print)


@pytest.mark.parametrize(
    ("command", "answer", "states"),
    [
        ("squeue", {"1": "PREEMPTED", "2": "RUNNING"}, {"1": "CANCELLED", "2": "RUNNING"}),
        ("sacct", {"1": "PREEMPTED", "2": "CANCELLED by 1000"}, {"1": "PREEMPTED", "2": "CANCELLED"}),
        ("squeue", None, {}),
    ],
)
def test_ends_that_the_plugin_overlooks_are_reported_in_its_words(
    command: str, answer: dict[str, str] | None, states: dict[str, str]
) -> None:
    async def query(_command: str, _logger: object) -> tuple[object, object]:
        return (answer, 0.1) if answer else (None, None)

    plugin = SimpleNamespace(query_job_status=query)
    cluster.heed_every_end(plugin)
    assert asyncio.run(plugin.query_job_status(command, None))[0] == states


def test_a_queue_that_stands_still_is_reported_once_for_each_reason(command, tmp_path: Path) -> None:
    lines = ["1|PENDING|Resources", "2|PENDING|Resources", "3|PENDING|PartitionConfig", "4|RUNNING|None"]
    command(
        "squeue", f"echo >> {tmp_path}/asked\n" + printing("\n".join([*lines, "\x1b[2J" * 500, "5|PENDING"]))
    )
    assert cluster.queue("run")[2:] == [Job("3", "PENDING", "PartitionConfig"), Job("4", "RUNNING", "None")]
    said: list[str] = []
    ended = cluster.watch("run", said.append, still_s=0.06, every_s=0.01)
    until(lambda: len(said) >= 2 and (tmp_path / "asked").stat().st_size > 30)
    ended.set()
    assert sorted(said) == [
        "SLURM, nothing new for 0.001 minutes: 1 of this run's jobs wait: PartitionConfig",
        "SLURM, nothing new for 0.001 minutes: 2 of this run's jobs wait: Resources",
    ]


def test_a_queue_that_moves_is_not_reported(command, tmp_path: Path) -> None:
    command("squeue", f'echo >> {tmp_path}/asked\necho "$(wc -l < {tmp_path}/asked)|PENDING|Priority"')
    said: list[str] = []
    ended = cluster.watch("run", said.append, still_s=0, every_s=0.01)
    until(lambda: (tmp_path / "asked").exists() and (tmp_path / "asked").stat().st_size > 10)
    ended.set()
    assert not said


def test_a_controller_that_does_not_answer_is_reported_once(command, tmp_path: Path) -> None:
    command("squeue", f"echo >> {tmp_path}/asked; echo 'Unable to contact slurm controller' >&2; exit 1")
    said: list[str] = []
    ended = cluster.watch("run", said.append, still_s=0.02, every_s=0.01)
    until(lambda: bool(said) and (tmp_path / "asked").stat().st_size > 20)
    ended.set()
    assert Counter(said).most_common() == [(said[0], 1)]
    assert (
        "squeue does not answer (Unable to contact slurm controller); the run goes on when it does" in said[0]
    )
