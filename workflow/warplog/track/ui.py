"""The saved views and runs in a store, and MLflow's server with a page of links to them.

MLflow's own pages lead to the runs of an experiment by date; only a link with the key of a saved view shows speeds.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from warplog.track import versions, view
from warplog.track.connection import FAMILY

PAGE = "/warplog"
STORE, STARTED_BY = "MLFLOW_BACKEND_STORE_URI", "WARPLOG_UI_PID"  # in the environment of the server
_MOST_RUNS = 5000
_HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>warplog in MLflow</title>
<style>body{font:15px sans-serif;margin:24px;max-width:60rem}h2{margin-bottom:4px}p{margin:4px 0}
a{display:inline-block;margin-right:1.2em}</style>
<h1>warplog in MLflow</h1>
<p>The first links of a family open the speeds and counters of all its variants as charts, the others one variant.</p>
"""
_NONE = "<p>There are no runs yet.</p>\n"


@dataclass(frozen=True)
class Shown:
    """One family in the store: paths of links, after the server's address, by the texts that they are shown with.

    `runs` holds the current runs of each campaign, in the order of the ladder.
    """

    family: str
    views: Mapping[str, str]
    runs: Mapping[str, Mapping[str, str]]


def shown(client: Any) -> list[Shown]:
    """Returns the families in the store of an MlflowClient, by name, with their saved views and current runs."""
    experiments = {
        experiment.experiment_id: experiment
        for experiment in client.search_experiments(max_results=1000)
        if FAMILY in experiment.tags
    }
    runs: dict[str, dict[str, dict[str, str]]] = {number: {} for number in experiments}
    for run in sorted(_current(client, list(experiments)), key=_order):
        number, tags = run.info.experiment_id, run.data.tags
        campaign = f"{tags.get('campaign', '')} ({tags.get('gpu_name', '')}, {tags.get('origin', '')})"
        path = view.run_path(number, run.info.run_id)
        runs[number].setdefault(campaign, {})[str(run.info.run_name)] = path
    found = [
        Shown(experiment.tags[FAMILY], dict(sorted(_views(number, experiment.tags))), runs[number])
        for number, experiment in experiments.items()
    ]
    return sorted(found, key=lambda one: one.family)


def page(families: Sequence[Shown]) -> str:
    """Returns the HTML page; its links are relative to the server's address."""
    return f"{_HEAD}{''.join(map(_section, families)) or _NONE}</html>\n"


def make_app() -> Any:
    """Returns MLflow's application with the page; ends with the process that is named in the environment.

    MLflow calls it: `mlflow server --app-name warplog`.
    """
    from mlflow import MlflowClient
    from mlflow.server import app
    from mlflow.server.fastapi_app import create_fastapi_app

    if owner := os.environ.get(STARTED_BY):
        threading.Thread(target=_end_with, args=(owner,), daemon=True).start()
    app.add_url_rule(PAGE, "warplog", lambda: page(shown(MlflowClient(os.environ[STORE]))))
    return create_fastapi_app(app)


def _end_with(owner: str) -> None:
    """Kills this server and its parent, which have a process group of their own, after the process `owner` ended."""
    while Path("/proc", owner).exists():
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


def _current(client: Any, experiments: Sequence[str]) -> Sequence[Any]:
    search = f"tags.`{versions.STATE}` = '{versions.CURRENT}'"
    found: Sequence[Any] = (
        client.search_runs(experiments, search, max_results=_MOST_RUNS) if experiments else ()
    )
    return found


def _order(run: Any) -> tuple[str, float]:
    return run.data.tags.get("campaign", ""), float(run.data.tags.get("ladder_order", "inf"))


def _views(experiment: str, tags: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in tags.items():
        if name.startswith(view.TAG_PREFIX):
            with suppress(
                ValueError, LookupError, TypeError
            ):  # anyone who can write to the store can save a view
                yield (
                    str(json.loads(value)["name"]),
                    view.path(experiment, name.removeprefix(view.TAG_PREFIX)),
                )


def _section(one: Shown) -> str:
    views = "\n".join(_link(path, name) for name, path in one.views.items())
    runs = "\n".join(
        f"<p>{escape(campaign)}:\n" + "\n".join(_link(path, name) for name, path in found.items()) + "</p>"
        for campaign, found in one.runs.items()
    )
    return f"<h2>{escape(one.family)}</h2>\n<p>{views}</p>\n{runs}\n"


def _link(path: str, text: str) -> str:
    return f'<a href="/{escape(path)}">{escape(text)}</a>'
