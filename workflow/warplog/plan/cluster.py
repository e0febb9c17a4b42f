"""What a run on SLURM checks before its first job is submitted, and reports while its jobs wait."""

import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warplog.core.errors import WarplogError
from warplog.core.text import listed, one_line

# With a minute to spare: Snakemake asks for the states of its jobs every 180 s at most, and must see each one's end.
SHORTEST_MEMORY_S = 240
_ANSWER_S = 60
_LONGEST = 200  # of a text from SLURM
_PROFILE = "in the profile (profiles/slurm/config.yaml)"
_MOST = 8  # kinds of nodes, or partitions, in a message
_NODE = re.compile(r"([^|]+)\|(\d{1,12})\|(\d{1,12})\|(.*)")
_GPUS = re.compile(r"(?:^|,)gpu:(?:([^:(),]+):)?(\d{1,6})\b")
_MEMORY = re.compile(r"^MinJobAge\s*=\s*(\d{1,12})", re.MULTILINE)


@dataclass(frozen=True)
class Hardware:
    """What a node has, or a job asks for; `gpus` is the number by type, "" for GPUs of no type, or of any."""

    cores: int
    memory_mb: int
    gpus: Mapping[str, int]

    @property
    def text(self) -> str:
        """All of it in words, such as `8 cores, 16000 MB, gpu:h200:1`."""
        gpus = [f"gpu:{kind}:{count}" if kind else f"gpu:{count}" for kind, count in self.gpus.items()]
        cores = "1 core" if self.cores == 1 else f"{self.cores} cores"
        return ", ".join([cores, f"{self.memory_mb} MB", *gpus])

    def has(self, asked: "Hardware") -> bool:
        """Returns whether a node has as much as a job asks for, if nothing else runs there."""
        kinds = {kind.lower(): count for kind, count in self.gpus.items()} | {"": sum(self.gpus.values())}
        enough = all(kinds.get(kind.lower(), 0) >= count for kind, count in asked.gpus.items())
        return enough and self.cores >= asked.cores and self.memory_mb >= asked.memory_mb


@dataclass(frozen=True)
class Request:
    """What a job, or a group of jobs, asks a partition for; "" is the default partition."""

    name: str
    partition: str
    hardware: Hardware


@dataclass(frozen=True)
class Job:
    """A job in SLURM's queue: its number, its state, such as PENDING, and SLURM's reason for it."""

    number: str
    state: str
    reason: str


def before_submitting(workflow: Any, report: Callable[[str], None]) -> None:
    """Checks that SLURM can run the jobs of Snakemake's `workflow`, then starts to `watch` them.

    Does nothing if another executor starts the jobs.

    Raises:
        WarplogError: a check failed.
    """
    if workflow.executor_plugin.name != "slurm":
        return
    settings, executor = workflow.executor_settings, workflow.scheduler._executor
    if settings.array_jobs:
        raise WarplogError(
            f"slurm-array-jobs: {settings.array_jobs!r}: groups of jobs, which this workflow submits, cannot be job"
            " arrays; remove the setting"
        )
    check_status_command(settings.status_command)
    check_requests(requests(workflow.dag), nodes())
    heed_every_end(sys.modules[type(executor).__module__])
    watch(executor.run_uuid, report)


def requests(dag: Any) -> Iterator[Request]:
    """Yields what the jobs and groups of Snakemake's `dag` that are going to be submitted ask for."""
    for job in dict.fromkeys(dag.get_job_group(job) or job for job in dag.needrun_jobs() if not job.is_local):
        asked = job.resources
        cores = _number(asked.get("cpus_per_task")) or job.threads
        memory_mb = _number(asked.get("mem_mb_per_cpu")) * cores or _number(asked.get("mem_mb"))
        gpus = _number(asked.get("gpu"))
        kinds = {str(asked.get("gpu_model") or ""): gpus} if gpus else {}
        yield Request(job.name, str(asked.get("slurm_partition") or ""), Hardware(cores, memory_mb, kinds))


def _number(resource: object) -> int:
    """Returns a resource; 0 if it is not set, or known only once the job's inputs exist."""
    return resource if isinstance(resource, int) else 0


def nodes() -> dict[str, list[Hardware]]:
    """Returns the different nodes of each partition.

    Raises:
        WarplogError: sinfo fails or does not answer.
    """
    groups: dict[str, list[Hardware]] = {}
    for line in _answer("sinfo", "-h", "-a", "-e", "-o", "%R|%c|%m|%G").splitlines():
        if node := _NODE.fullmatch(line):
            gpus: Counter[str] = Counter()
            for kind, count in _GPUS.findall(node[4]):
                gpus[_shortened(kind)] += int(count)
            groups.setdefault(_shortened(node[1]), []).append(Hardware(int(node[2]), int(node[3]), gpus))
    return groups


def check_requests(wanted: Iterable[Request], there: Mapping[str, Sequence[Hardware]]) -> None:
    """Checks that each job fits a node of its partition; else SLURM would let it wait for ever.

    Raises:
        WarplogError: a job fits none, or there is no such partition.
    """
    for job in wanted:
        named = job.partition.split(",") if job.partition else there
        kinds = [node for name in named for node in there.get(name, ())]
        if not kinds:
            raise WarplogError(
                f"slurm_partition: SLURM has no nodes in a partition {job.partition!r}, only in"
                f" {listed(list(there)[:_MOST])}; correct it {_PROFILE}"
            )
        if not any(node.has(job.hardware) for node in kinds):
            texts = list(dict.fromkeys(node.text for node in kinds))
            raise WarplogError(
                f"{job.name}: a job asks for {job.hardware.text}, but the nodes of {job.partition or 'SLURM'} have"
                f" {' or '.join(texts[:_MOST])}; lower group-components, set-threads or mem_mb {_PROFILE}, or"
                " correct `gres` of the GPU in config/gpus.yaml"
            )


def check_status_command(name: str) -> None:
    """Checks that the command that Snakemake asks for the states of its jobs answers, and knows jobs that ended.

    Raises:
        WarplogError: it does not; Snakemake would wait for ever.
    """
    if name == "sacct":
        try:
            _answer(
                "sacct", "-X", "--clusters", "all", "--noheader", "--format=JobIdRaw,State", "--name=warplog"
            )
        except WarplogError as error:
            raise WarplogError(
                f"{error}; without slurmdbd, set slurm-status-command: squeue {_PROFILE}"
            ) from None
        return
    age = _MEMORY.search(_answer("scontrol", "show", "config"))
    if age and int(age[1]) < SHORTEST_MEMORY_S:
        raise WarplogError(
            f"slurm-status-command: squeue: this cluster forgets jobs {int(age[1])} s after their end (MinJobAge), and"
            f" Snakemake needs {SHORTEST_MEMORY_S} s; set slurm-status-command: sacct {_PROFILE}"
        )


def heed_every_end(plugin: Any) -> None:
    """Makes the executor plugin notice every end of a job, of which version 2.8.0 overlooks three.

    The plugin waits for ever for a job that sacct calls "CANCELLED by 1000", for one that was pre-empted and is not
    queued again, and for all jobs once the status command has failed five times in a row.
    """
    ask = plugin.query_job_status

    async def states_of(command: str, logger: Any) -> tuple[dict[str, str], float]:
        states, seconds = await ask(command, logger)
        # A job that SLURM queues again is pending to squeue; to sacct it stays pre-empted until it starts.
        ended = {"PREEMPTED": "CANCELLED"} if command.startswith("squeue") else {}
        words = {job: state.partition(" ")[0] for job, state in (states or {}).items()}
        return {job: ended.get(word, word) for job, word in words.items()}, seconds or 0.0

    plugin.query_job_status = states_of


def watch(
    run: str, report: Callable[[str], None], still_s: float = 300, every_s: float = 30
) -> threading.Event:
    """Starts a thread that reports SLURM's reasons, each once, if the jobs of a run wait and none starts or ends.

    It also reports if squeue does not answer. The thread ends with the process, or when the returned event is set.

    Args:
        run: the name of the run's jobs.
        still_s: how long none must have started or ended.
        every_s: time between two looks at the queue.
    """
    ended = threading.Event()

    def look() -> None:
        reported: set[str] = set()
        former: object = None
        since = time.monotonic()
        while not ended.wait(every_s):
            states: object
            try:
                jobs = queue(run)
                states = {(job.number, job.state) for job in jobs}
                reasons = Counter(job.reason for job in jobs if job.state == "PENDING")
                lines = {
                    reason: f"{count} of this run's jobs wait: {reason}" for reason, count in reasons.items()
                }
            except WarplogError as error:
                states, lines = None, {"no answer": f"{error}; the run goes on when it does"}
            if states != former:
                former, since = states, time.monotonic()
            elif time.monotonic() - since >= still_s:
                for reason in lines.keys() - reported:
                    report(f"SLURM, nothing new for {still_s / 60:.3g} minutes: {lines[reason]}")
                reported |= lines.keys()

    threading.Thread(target=look, daemon=True).start()
    return ended


def queue(run: str) -> list[Job]:
    """Returns the jobs of a run that wait or run.

    Raises:
        WarplogError: squeue fails or does not answer.
    """
    lines = _answer("squeue", "-h", "--name", run, "-o", "%i|%T|%r").splitlines()
    return [Job(*map(_shortened, line.split("|", 2))) for line in lines if line.count("|") >= 2]


def _answer(*command: str) -> str:
    """Returns what a command of SLURM prints.

    Raises:
        WarplogError: it fails, or does not answer within a minute.
    """
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_ANSWER_S, check=False
        )
    except OSError as error:
        raise WarplogError(
            f"SLURM: {command[0]}: {error.strerror}; start the run on a node of the cluster"
        ) from None
    except subprocess.TimeoutExpired:
        raise WarplogError(f"SLURM: {command[0]} has not answered for {_ANSWER_S} s") from None
    if done.returncode:
        why = _shortened(done.stderr) or f"exit status {done.returncode}"
        raise WarplogError(f"SLURM: {command[0]} does not answer ({why})")
    return done.stdout


def _shortened(text: str) -> str:
    return one_line(text)[:_LONGEST]
