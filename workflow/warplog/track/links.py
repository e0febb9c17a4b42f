"""Pages of links to saved views and runs in MLflow: of one campaign as a file, of a whole store beside MLflow's pages.

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

from warplog.core.paths import own_command
from warplog.track import versions, view
from warplog.track.log import LOCAL_UI, link_base
from warplog.track.presence import LoggedCampaign

PAGE = "/warplog"
STORE, STARTED_BY = "MLFLOW_BACKEND_STORE_URI", "WARPLOG_UI_PID"  # in the environment of the server
_MOST_RUNS = 5000
_HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Runs in MLflow</title>
<style>body{font:15px sans-serif;margin:24px;max-width:60rem}h2{margin-bottom:4px}p{margin:4px 0}
p a{display:inline-block;margin-right:1.2em}</style>
<h1>Runs in MLflow</h1>
<p>The first links of a family open the table and the charts of all its variants, the others open one variant.</p>
"""
# MLflow's own pages open on traces of language models, with its assistant beside them. What MLflow 3.17 keeps in the
# browser changes that for this address, unless the user chose otherwise.
_DEFAULTS = """<script>
localStorage["mlflow.workflowType_v1"] ??= '"machine_learning"';
localStorage["mlflow.assistant.fab.autoOpenedOnFirstLoad_v1"] ??= "true";
</script>
"""


@dataclass(frozen=True)
class Links:
    """Addresses of one family, by the texts that they are shown with.

    `runs` holds the current runs of each campaign, in the order of the ladder.
    """

    family: str
    views: Mapping[str, str]
    runs: Mapping[str, Mapping[str, str]]


def page(logged: LoggedCampaign, uri: str) -> str:
    """Returns an HTML page with links to the table and charts of each family and to the run of each variant."""
    base = link_base(uri)
    how = f"<p>First run <code>{escape(own_command('ui'))}</code></p>\n" if base == LOCAL_UI else ""
    families = []
    for experiment in logged.experiments:
        runs = {
            v: f"{base}/{view.run_path(experiment.experiment_id, run)}" for v, run in experiment.runs.items()
        }
        families.append(Links(experiment.family, {"Speed and counters": experiment.link}, {"variants": runs}))
    return _html(families, how)


def of_store(client: Any, base: str) -> list[Links]:
    """Returns the families in the store of an MlflowClient, by name; `base` is the address of its pages."""
    experiments = {
        experiment.experiment_id: experiment
        for experiment in client.search_experiments(max_results=1000)
        if versions.FAMILY in experiment.tags
    }
    runs: dict[str, dict[str, dict[str, str]]] = {number: {} for number in experiments}
    search = f"tags.`{versions.STATE}` = '{versions.CURRENT}'"
    current = client.search_runs(list(experiments), search, max_results=_MOST_RUNS) if experiments else ()
    for run in sorted(current, key=_order):
        number, tags = run.info.experiment_id, run.data.tags
        campaign = f"{tags.get('campaign', '')} ({tags.get('gpu_name', '')}, {tags.get('origin', '')})"
        address = f"{base}/{view.run_path(number, run.info.run_id)}"
        runs[number].setdefault(campaign, {})[str(run.info.run_name)] = address
    families = [
        Links(
            experiment.tags[versions.FAMILY],
            dict(sorted(_views(number, experiment.tags, base))),
            runs[number],
        )
        for number, experiment in experiments.items()
    ]
    return sorted(families, key=lambda family: family.family)


def make_app() -> Any:
    """Returns MLflow's application with the page; ends with the process that is named in the environment.

    MLflow calls it: `mlflow server --app-name warplog`.
    """
    from mlflow import MlflowClient
    from mlflow.server import app
    from mlflow.server.fastapi_app import create_fastapi_app

    if owner := os.environ.get(STARTED_BY):
        threading.Thread(target=_end_with, args=(owner,), daemon=True).start()
    app.add_url_rule(PAGE, "warplog", lambda: _html(of_store(MlflowClient(os.environ[STORE]), ""), _DEFAULTS))
    return create_fastapi_app(app)


def _end_with(owner: str) -> None:
    """Kills this server and its parent, which have a process group of their own, after the process `owner` ended."""
    while Path("/proc", owner).exists():
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


def _order(run: Any) -> tuple[str, float]:
    return run.data.tags.get("campaign", ""), float(run.data.tags.get("ladder_order", "inf"))


def _views(experiment: str, tags: Mapping[str, str], base: str) -> Iterator[tuple[str, str]]:
    for name, value in tags.items():
        if name.startswith(view.TAG_PREFIX):
            address = f"{base}/{view.path(experiment, name.removeprefix(view.TAG_PREFIX))}"
            with suppress(
                ValueError, LookupError, TypeError
            ):  # anyone who can write to the store can save a view
                yield str(json.loads(value)["name"]), address


def _html(families: Sequence[Links], note: str = "") -> str:
    return f"{_HEAD}{note}{''.join(map(_section, families))}</html>\n"


def _section(links: Links) -> str:
    runs = "".join(
        f"<p>{escape(campaign)}:\n{_anchors(addresses)}</p>\n" for campaign, addresses in links.runs.items()
    )
    views = "".join(
        f"<p>{_anchors({name: addresses, 'charts': addresses + view.CHARTS})}</p>\n"
        for name, addresses in links.views.items()
    )
    return f"<h2>{escape(links.family)}</h2>\n{views}{runs}"


def _anchors(addresses: Mapping[str, str]) -> str:
    return "\n".join(f'<a href="{escape(address)}">{escape(text)}</a>' for text, address in addresses.items())
