"""SIGTERM ends a run of Snakemake in bounded time, whatever its scheduler does, and nobody else."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import warplog
from warplog.core.errors import WarplogError
from warplog.core.locks import hold_folder

LONGEST_S = 100
PATIENCE_S = 1  # after which Snakemake hangs, in the test of this
# The scheduler is sent SIGTERM while it holds its lock, for which its own handler waits.
SIGNALLED = "os.kill(os.getpid(), signal.SIGTERM)"
HANGS = f"{SIGNALLED}; threading.Event().wait()"
OPTIONS = ("--nolock", "--rerun-incomplete", "--workflow-profile", "none")
SNAKEFILE = f"""
import os, signal, sys, threading
from snakemake.scheduling.job_scheduler import JobScheduler
sys.path.insert(0, {str(Path(warplog.__file__).parents[1])!r})
from warplog.plan.ending import bound_sigterm
from warplog.core.locks import hold_folder

finish = JobScheduler._finish_jobs
def finish_jobs(self):
    if self._tofinish and "DO" in os.environ:
        exec(os.environ.pop("DO"))
    finish(self)
JobScheduler._finish_jobs = finish_jobs

onstart:
    bound_sigterm(True, float(os.environ["PATIENCE_S"]))
    hold_folder(".")

rule all:
    input: "last"
rule first:
    output: "first"
    shell: "setsid sleep 600 >/dev/null 2>&1 & echo $! > left; echo >> runs; touch first"
rule last:
    input: "first"
    output: "last"
    shell: "$SLOW touch last"
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Yields a folder with a workflow; ends what its first job left behind."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    yield tmp_path
    with suppress(ProcessLookupError):
        os.kill(left(tmp_path), signal.SIGKILL)


def left(place: Path) -> int:
    """Returns the process that the first job left behind in a session of its own."""
    return int((place / "left").read_text())


def start(place: Path, **variables: str) -> "subprocess.Popen[str]":
    """Starts Snakemake in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "1", *OPTIONS],
        cwd=place,
        env={**os.environ, "SLOW": "", "PATIENCE_S": "30", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )


def output(run: "subprocess.Popen[str]") -> str:
    """Returns the output of a run that has to end by itself."""
    try:
        return run.communicate(timeout=LONGEST_S)[0]
    finally:
        run.kill()


def is_running(pid: int) -> bool:
    """Returns whether a process runs that is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def await_line(run: "subprocess.Popen[str]", words: str) -> None:
    """Reads the output of a run until a line contains the words."""
    assert run.stdout is not None
    assert any(words in line for line in run.stdout), words


@pytest.mark.faults
def test_snakemake_still_waits_for_a_lock_that_it_holds_if_sigterm_arrives_then(place: Path) -> None:
    """Without the handler; if this fails, Snakemake was mended."""
    text = SNAKEFILE.replace("    bound_sigterm", "    print('on', flush=True)  # ")
    (place / "Snakefile").write_text(text)
    run = start(place, DO=f"print('signalled', flush=True); {SIGNALLED}")
    await_line(run, "signalled")
    with pytest.raises(subprocess.TimeoutExpired):
        run.wait(2)
    run.kill()
    run.communicate()


def test_sigterm_at_the_worst_moment_ends_the_run_and_the_next_one_goes_on(place: Path) -> None:
    run = start(place, DO=SIGNALLED)
    assert "ending after the running jobs" in output(run)
    assert run.returncode == 1
    again = start(place)
    output(again)
    assert again.returncode == 0
    assert (place / "runs").read_text() == "\n", "the first job was not run again"


def test_a_scheduler_that_hangs_is_ended_with_what_its_jobs_left_but_not_its_callers_group(
    place: Path,
) -> None:
    run = start(place, DO=HANGS, PATIENCE_S=str(PATIENCE_S))
    neighbour = subprocess.Popen(["sleep", "600"], process_group=run.pid)
    try:
        assert f"hung for {PATIENCE_S} s after its last job" in output(run)
        assert run.returncode == 128 + signal.SIGTERM
        assert not is_running(left(place))
        assert neighbour.poll() is None
    finally:
        neighbour.kill()
        neighbour.wait()
    again = start(place)
    output(again)
    assert again.returncode == 0, "the lock of the folder is free"


def test_a_second_sigterm_ends_the_running_jobs(place: Path) -> None:
    run = start(place, SLOW="echo working; sleep 600;")
    await_line(run, "working")
    with pytest.raises(WarplogError, match=rf"another run is working in .* \(process {run.pid} on "):
        hold_folder(str(place))
    run.send_signal(signal.SIGTERM)
    await_line(run, "ending after the running jobs")
    assert run.poll() is None
    run.send_signal(signal.SIGTERM)
    output(run)
    assert run.returncode != 0
