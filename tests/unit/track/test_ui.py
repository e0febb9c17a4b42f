"""`warplog ui`: the page of links that MLflow's server shows, and its end with the command that started it."""

import importlib.util
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from html import unescape
from pathlib import Path

import pytest

import warplog
from warplog.cli import browsing, main
from warplog.track import links as track_links
from warplog.track.view import CHARTS

PACKAGES = str(Path(warplog.__file__).parents[1])


def fetch(address):
    with urllib.request.urlopen(address, timeout=30) as answer:
        return answer.read().decode()


def servers(owner):
    """Returns the ids of the processes of the server that `warplog ui` started as process `owner`."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            variables = (place / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"{track_links.STARTED_BY}={owner}".encode() in variables:
            found.append(int(place.name))
    return found


def wait_for(condition, seconds=120):
    for _ in range(seconds * 10):
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError("waited in vain")


@pytest.fixture
def started(template, tmp_path):
    """`warplog ui` on a terminal, in a project with runs, and the file to which its browser writes addresses."""
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/opened\n')
    browser.chmod(0o755)
    terminal, other_end = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    with subprocess.Popen(
        [sys.executable, "-m", "warplog", "ui"],
        cwd=template.root,
        env=environment | {"PYTHONPATH": PACKAGES, "BROWSER": str(browser)},
        stdout=other_end,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        os.close(other_end)
        yield child, tmp_path / "opened"
        child.kill()
    os.close(terminal)


def test_the_page_leads_to_saved_views_and_runs_and_ctrl_c_ends_the_server(
    started, template, tmp_path, monkeypatch, capsys
):
    child, opened = started
    address = wait_for(lambda: opened.exists() and opened.read_text()).strip()
    base = address.removesuffix(track_links.PAGE)
    assert base.startswith("http://127.0.0.1:")
    page = fetch(address)
    links = [unescape(link) for link in re.findall('href="(.*?)"', page)]
    assert all("workflowType=machine_learning" in link for link in links)
    keys = {re.search("viewStateShareKey=([^&]+)", link)[1] for link in links if "viewStateShareKey" in link}
    experiment = template.experiment().experiment_id
    stored = json.loads(fetch(f"{base}/api/2.0/mlflow/experiments/get?experiment_id={experiment}"))
    tags = {tag["key"] for tag in stored["experiment"]["tags"]}
    assert keys
    assert {f"mlflow.sharedViewState.{key}" for key in keys} <= tags
    for run in template.current():
        assert f"/#/experiments/{experiment}/runs/{run.info.run_id}?workflowType=machine_learning" in links
    assert "<title>MLflow</title>" in fetch(f"{base}{links[0]}".partition("#")[0])
    foreign = urllib.request.Request(address, headers={"Host": "elsewhere.example"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(foreign, timeout=30)

    monkeypatch.setenv("MLFLOW_TRACKING_URI", base)
    monkeypatch.chdir(tmp_path)
    assert main.main(["ui"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert {line.rpartition(": ")[2].removeprefix(base) for line in shown} == {
        link for link in links if "viewStateShareKey" in link and not link.endswith(CHARTS)
    }

    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert (child.returncode, said) == (0, "starting MLflow ...\nCtrl-C ends it\n")
    assert servers(child.pid) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_server_is_not_left_behind_if_the_command_is_killed(started, number):
    child, _ = started
    wait_for(lambda: servers(child.pid))
    child.send_signal(number)
    child.wait(60)
    wait_for(lambda: not servers(child.pid))


def test_what_is_missing_is_one_line_with_its_remedy(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main.main(["ui"]) == 1
    error = capsys.readouterr().err
    assert "results/mlflow.db: no such store; `warplog run -- track` logs a campaign" in error
    assert error.count("\n") == 1
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main.main(["ui"]) == 1
    assert 'pip install "warplog[workflow]"' in capsys.readouterr().err


def test_a_view_that_somebody_else_saved_badly_is_left_out_and_names_are_escaped():
    tags = {"mlflow.sharedViewState.a": "{", "mlflow.sharedViewState.b": '{"name": "<b>"}'}
    family = track_links.Links("x<y", dict(track_links._views("1", tags, "")), {"<c>": {"<v>": "/#/r"}})
    page = track_links._html([family])
    assert page.count("viewStateShareKey") == 2, "the table and the charts"
    assert not {"x<y", "<b>", "<c>", "<v>"} & set(re.findall(r"x<y|<\w>", page))


def test_a_port_that_is_in_use_is_named_and_without_the_option_another_is_taken(
    template, monkeypatch, capsys
):
    monkeypatch.chdir(template.root)
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        assert main.main(["ui", "--port", str(port)]) == 1
        assert f"--port {port}: is in use" in capsys.readouterr().err
        assert browsing._free_port(port, 0) != port


def test_a_server_that_ends_by_itself_is_an_error_with_its_last_words(template, monkeypatch, capsys):
    monkeypatch.chdir(template.root)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert main.main(["ui"]) == 1
    assert "error: MLflow's server ended (exit status 1)" in capsys.readouterr().err
