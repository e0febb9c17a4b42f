"""The GitHub Action of `warplog gate`: whom it refuses, and its commands, run here in place of a runner."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from test_duel_on_the_host import PROJECT, environment, git
from test_gate_packs import FAST, SLOW, machine

from host_family import REFERENCE, YAML

ACTION = yaml.safe_load((PROJECT / ".github" / "actions" / "gate" / "action.yml").read_text())
REFUSAL, GATE = ACTION["runs"]["steps"]


class Context(SimpleNamespace):
    """A context of GitHub: what it lacks is empty."""

    def __getattr__(self, name: str) -> "Context | str":
        return Context() if not name.startswith("_") else ""


def is_refused(event_name: str, head: str | None = None) -> bool:
    """Evaluates the condition of the step that refuses, for an event with a pull request of the repository `head`."""
    event = Context()
    if head is not None:
        event.pull_request = Context(head=Context(repo=Context(full_name=head)))
    names: dict[str, Any] = {
        "github": Context(event_name=event_name, event=event, repository="own/project"),
        "contains": lambda texts, text: text in texts,
        "fromJSON": json.loads,
    }
    condition = (
        REFUSAL["if"].removeprefix("${{").removesuffix("}}").replace("!(", "not (").replace("||", "or")
    )
    return eval(condition.strip(), {"__builtins__": {}}, names)  # the action's own text


@pytest.mark.parametrize(
    ("event_name", "head", "refused"),
    [
        ("pull_request", "own/project", False),
        ("push", None, False),
        ("workflow_dispatch", None, False),
        ("pull_request", "other/project", True),
        ("pull_request_target", "other/project", True),
        ("pull_request", None, True),  # the fork is deleted
        ("issue_comment", None, True),
        ("workflow_run", None, True),
    ],
)
def test_only_code_of_the_repository_itself_is_run(event_name: str, head: str | None, refused: bool) -> None:
    assert is_refused(event_name, head) == refused


def test_the_refusal_comes_first_and_ends_the_job() -> None:
    assert ACTION["runs"]["using"] == "composite"
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", REFUSAL["run"]], capture_output=True, check=False)
    assert done.returncode == 1
    assert "continue-on-error" not in REFUSAL
    assert GATE.keys() == {
        "name",
        "shell",
        "working-directory",
        "env",
        "run",
    }  # no condition: not after a failure
    assert "${{" not in GATE["run"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a checkout whose last commit made `right` slower."""
    place = machine(tmp_path_factory.mktemp("action") / "checkout")
    family = place / "kernels" / "scale"
    family.mkdir()
    (family / "family.yaml").write_text(YAML)
    (family / "reference.py").write_text(REFERENCE)
    (place / ".gitignore").write_text("results/\nsite/\ntemporary/\n")
    git(place, "init", "-q")
    for source in (FAST, SLOW):
        (family / "right.cu").write_text(source)
        git(place, "add", "-A")
        git(place, "commit", "-q", "-m", "a change")
    return place


def gate(place: Path, base: str, options: str = "") -> tuple[int, str, str]:
    """Runs the commands of the action; returns exit status, errors and the summary of the job."""
    summary = place / "temporary" / "summary.md"
    inputs = {"BASE": base, "HEAD": "HEAD", "OPTIONS": f"--margin 0.3 {options}"}
    assert GATE["env"].keys() == {*inputs, "COMMAND"}
    own = {**environment(place), **inputs, "COMMAND": f"{sys.executable} -m warplog"}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", GATE["run"]],
        cwd=place,
        env={**own, "GITHUB_STEP_SUMMARY": str(summary)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = summary.read_text()
    summary.unlink()
    assert list((place / "temporary").iterdir()) == []
    return done.returncode, done.stderr, said


def test_a_loss_fails_the_job_and_its_summary_says_why(place: Path) -> None:
    status, _, summary = gate(place, "HEAD~", "--seconds 0.1")
    assert status == 1
    assert summary.startswith("### Loss: HEAD against HEAD~")
    assert "scale/right" in summary


def test_without_a_change_the_job_passes(place: Path) -> None:
    status, _, summary = gate(place, "HEAD")
    assert status == 0
    assert summary.startswith("### Nothing to measure")


def test_a_base_is_never_taken_for_an_option_or_a_command(place: Path) -> None:
    for base in ("--json", "$(touch evil)", "a b; touch evil"):
        status, errors, summary = gate(place, base)
        assert (status, summary) == (2, "")
        assert "is no commit, tag or branch" in errors
    assert not (place / "evil").exists()
