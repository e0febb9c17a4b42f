"""Times how long an experiment with many runs takes to show in MLflow's UI, in headless Chromium.

    python tests/benchmarks/experiment_page_time.py [RUNS] [FOLDER]

Logs sgemm of the recorded campaign under as many names as make RUNS (1000) runs to an SQLite store in FOLDER (default:
a temporary one); a store that is there already is used as it is. Serves it with `mlflow server` and opens three pages,
each five times in a new browser without a cache: the view of one campaign as charts, and the view of all campaigns as
a table and as charts. A page is there once the names of runs are shown and, for charts, the first chart is drawn.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from mlflow import MlflowClient
from msgspec.structs import replace

from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.track import log, view

RECORDED = Path(__file__).parents[2] / "results" / "recorded" / "h200"
FAMILY = "sgemm"
PASSES = 5
NAMES = "document.querySelectorAll('a[href*=\"/runs/\"]').length > 9"
CHART = (
    "document.querySelector('.js-plotly-plot .main-svg .bars path, .js-plotly-plot .main-svg .lines path')"
)


def main(runs: int, folder: Path) -> None:
    """Logs the runs if there is no store, and prints for each page the median, the fastest and the slowest time."""
    database = folder.resolve() / "mlflow.db"
    store = f"sqlite:///{database}"
    missing = 0 if database.exists() else runs
    while missing > 0:
        missing -= len(log_again(folder / "tables", f"timed-{missing:05d}", store).runs)
    experiment = (
        MlflowClient(store).get_experiment_by_name(log.EXPERIMENT.format(family=FAMILY)).experiment_id
    )
    one, every = view.path(experiment, "warplog-h200-live"), view.path(experiment, "warplog-all")
    pages = {
        "one campaign, charts": (one + view.CHARTS, f"{NAMES} && {CHART}"),
        "all campaigns, table": (every, NAMES),
        "all campaigns, charts": (every + view.CHARTS, f"{NAMES} && {CHART}"),
    }
    with served(store) as address:
        seconds(f"{address}/{one}", NAMES)  # the server's first answer takes longer
        for name, (path, there) in pages.items():
            took = sorted(seconds(f"{address}/{path}", there) for _ in range(PASSES))
            print(f"{name}: median {median(took):.2f} s ({took[0]:.2f} to {took[-1]:.2f})", flush=True)


def log_again(tables: Path, campaign: str, store: str) -> log.LoggedExperiment:
    """Logs the recorded family under another name of the campaign."""
    (record,) = (RECORDED / "campaign").glob("*.json")
    for path in (RECORDED / "tables").glob("*.parquet"):
        table = pd.read_parquet(path)
        table = table[table["family"] == FAMILY] if "family" in table else table
        tables.mkdir(exist_ok=True)
        renamed = table.assign(campaign=campaign) if "campaign" in table else table
        renamed.to_parquet(tables / path.name, index=False)
    named = replace(door.read(record, Campaign), campaign=campaign)
    return log.log_campaign(tables, named, {}, store).experiments[0]


@contextlib.contextmanager
def served(store: str) -> Iterator[str]:
    """Serves the store; yields the address of the UI."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = ["mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "DO_NOT_TRACK": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
    server = subprocess.Popen([*command, "--backend-store-uri", store], env=environment, **quiet)
    try:
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{address}/health", timeout=1)
                break
            time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        server.wait()


def seconds(address: str, there: str) -> float:
    """Returns the time from opening the page in a new browser until the expression `there` holds."""
    from playwright.sync_api import sync_playwright

    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as running:
        shown = running.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = shown.new_page(viewport={"width": 1600, "height": 1000})
        begin = time.monotonic()
        page.goto(address, wait_until="commit")
        page.wait_for_function(there, timeout=120_000, polling=20)
        took = time.monotonic() - begin
        shown.close()
    return took


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        kept = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(temporary)
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, kept)
