"""A run that is sent signals at random moments ends each time, and comes to the same tables in the end."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from warplog.core.hashing import sha256_file

PROJECT = Path(__file__).parents[2]
SEED = 20261124
ENDS_WITHIN_S = 60
FINISHED_WITHIN_S = 600  # the jobs that run, after one SIGTERM to Snakemake alone
COMMAND = (
    *("-m", "snakemake", "-s", PROJECT / "workflow/Snakefile"),
    *("--workflow-profile", PROJECT / "profiles/default"),
    *("--cores", "2", "tables", "figures", "--config", "mode=recorded", "families=transpose,bf16_gemm"),
)


def tables(place: Path) -> dict[str, str]:
    return {path.name: sha256_file(path) for path in (place / "results" / "tables").glob("[a-z]*")}


def send(run: "subprocess.Popen[bytes]", number: int, chosen: random.Random) -> int:
    """Sends a signal to Snakemake alone, or to its group, or to both; returns within how many seconds it has to end."""
    ways = chosen.choice(((os.kill,), (os.killpg,), (os.killpg,), (os.kill, os.killpg)))
    for way in ways:
        way(run.pid, number)
    return FINISHED_WITHIN_S if ways == (os.kill,) and number != signal.SIGHUP else ENDS_WITHIN_S


def disturbed(place: Path, number: int, seconds: float, chosen: random.Random) -> str:
    """Runs the campaign and sends it a signal after so many seconds; returns what is wrong with its end."""
    with tempfile.TemporaryFile() as output:
        run = subprocess.Popen(
            [sys.executable, *COMMAND],
            cwd=place, stdout=output, stderr=output, process_group=0, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        within_s = ENDS_WITHIN_S
        try:
            run.wait(seconds)
        except subprocess.TimeoutExpired:
            within_s = send(run, number, chosen)
        try:
            run.wait(within_s)
        except subprocess.TimeoutExpired:
            return f"signal {number} after {seconds} s: it runs on"
        finally:
            run.kill()
        if run.returncode == 0:  # nothing would be left to do
            shutil.rmtree(place / "results")
        output.seek(0)
        said = output.read().decode()
        wrong = (
            "Traceback" in said and number != signal.SIGINT
        )  # of Snakemake itself, before it has read the workflow
        return f"signal {number} after {seconds} s: {said[-2000:]}" if wrong or "hung for" in said else ""


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_run_ends_after_signals_at_twenty_random_moments_and_comes_to_the_same_tables(
    tmp_path: Path, number: int
) -> None:
    places = [tmp_path / "disturbed", tmp_path / "undisturbed"]
    for place in places:
        place.mkdir()
    chosen = random.Random(f"{SEED}/{number}")
    tries = [disturbed(places[0], number, chosen.uniform(0.1, 12), chosen) for _ in range(20)]
    assert [found for found in tries if found] == []
    for place in places:
        done = subprocess.run(
            [sys.executable, *COMMAND], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert done.returncode == 0, done.stdout[-3000:]
    assert tables(places[0]) == tables(places[1]) != {}
