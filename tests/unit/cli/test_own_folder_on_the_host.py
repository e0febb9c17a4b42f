"""A folder made by `warplog init`, on a machine whose CPU stands in for the GPU: its accesses need nothing more."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import snakemake_runs
from warplog.cli import main

PROJECT = Path(__file__).parents[3]
C = "for (int i = 0; i < a->N; ++i) a->y[i] = 2 * a->x[i];"
PYTHON = """
def launch(arrays, scalars, stream):
    arrays["y"][:] = 2 * arrays["x"]
"""
QUICK = (
    'profile={"ncu": false, "nsys": false}',
    'time={"processes": 2, "most_processes": 1, "max_samples": 10, "max_seconds": 0.2, "hot_seconds": 0.001}',
)


@pytest.mark.timeout(300)
def test_accesses_are_traced_in_all_languages_and_on_the_page_after_the_next_run(tmp_path: Path) -> None:
    """The stand-in for the tracer says the same of each launch: 8 requests of 4 sectors."""
    own, site = tmp_path / "own", tmp_path / "site"
    for folder in (own, site):
        folder.mkdir()
    pretended = (PROJECT / "tests/workflow/pretended_gpu.py").read_text()
    forks = f"import sys\nsys.executable = {snakemake_runs.interpreter()!r}\n"  # for jobs, which import much
    (site / "sitecustomize.py").write_text(pretended + forks)
    assert main.main(["init", str(own), "--op", "elementwise", "--dtype", "float32", "--name", "mine"]) == 0
    family = own / "warplog" / "kernels" / "mine"
    contract = (family / "family.yaml").read_text().replace("1048576", "64").replace("67108864", "1000")
    for language in ("cupy", "triton"):
        contract += f"  - {{name: {language}, language: {language}, parent: naive, idea: in Python}}\n"
        (family / f"{language}.py").write_text(PYTHON)
    (family / "family.yaml").write_text(contract)
    (family / "naive.cu").write_text(C)

    def run(*targets: str) -> None:
        environment = {key: value for key, value in os.environ.items() if key != "MLFLOW_TRACKING_URI"}
        environment["PYTHONPATH"] = f"{PROJECT / 'workflow'}:{site}:{PROJECT / 'tests' / 'support'}"
        command = [sys.executable, "-m", "warplog", "run", str(own), "--config", *QUICK]
        done = subprocess.run(
            [*command, *targets], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    run("--", "accesses")
    results = own / "warplog" / "results"
    table = pd.read_csv(results / "tables" / "accesses.csv").set_index("variant")
    assert dict(table["status"]) == {"naive": "ok", "cupy": "ok", "triton": "ok"}
    run("--", "worklog")
    page = (results / "worklog" / "mine.md").read_text()
    assert page.count("load from global memory | 4 sectors | 4 | 32 B |  | 8 |") == 3
    assert page.count("From the addresses of one launch, not from hardware counters.") == 3
    assert re.findall(r"!\[(.*)\]", page) == ["Ladder"], "without counters, no figure has them"
