"""The function of docs/security.md that runs kernels in a container, as printed there."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "workflow" / "docs" / "security.md"
CODE = re.findall(r"```bash\n(contained\(\).*?^\}\n)", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)[0]
BINDS = ("--bind", "--dev-bind", "--ro-bind", "--ro-bind-try")


@pytest.fixture
def project(tmp_path):
    """A folder with an environment that has the interpreter of the tests, and a secret beside it."""
    folder = tmp_path / "a project"
    (folder / ".venv" / "bin").mkdir(parents=True)
    interpreter = os.path.realpath(shutil.which("python3"))
    (folder / ".venv" / "bin" / "python").symlink_to(interpreter)
    (tmp_path / "secret").write_text("secret")
    return folder


def contained(project, *command, path="", **environment):
    """Runs a command by the function, in bash."""
    script = f'{CODE}\ncontained "$@"'
    return subprocess.run(
        ["bash", "-euc", script, "bash", *command], cwd=project, capture_output=True, text=True, check=False,
        timeout=60, env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}", **environment},
    )  # fmt: skip


def works() -> bool:
    command = ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"]
    return (
        bool(shutil.which("bwrap"))
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


def test_only_results_can_be_written_and_there_is_no_network(project, tmp_path):
    """A program in place of bwrap prints its arguments."""
    printer = tmp_path / "bin" / "bwrap"
    printer.parent.mkdir()
    printer.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    printer.chmod(0o755)
    words = contained(project, "snakemake", "--cores", "1", path=str(printer.parent)).stdout.splitlines()
    assert words[-3:] == ["snakemake", "--cores", "1"]
    assert {"--unshare-all", "--clearenv", "--new-session", "--die-with-parent"} <= set(words)
    assert "--share-net" not in words
    binds = [(word, words[n + 1]) for n, word in enumerate(words) if word in BINDS]
    assert [place for kind, place in binds if kind == "--bind"] == [
        f"{project}/results",
        f"{project}/.snakemake",
    ]
    assert ("--ro-bind", f"{project}/results/recorded") in binds
    seen = {place for _, place in binds}
    assert not seen & {"/", "/home", "/root", "/etc", str(Path.home()), str(tmp_path)}


@pytest.mark.skipif(not works(), reason="bubblewrap is not installed, or user namespaces are not allowed")
def test_a_program_in_the_container_reaches_neither_network_nor_secrets(project, tmp_path):
    program = f"""
import os, socket
def fails(action, *arguments):
    try:
        action(*arguments)
    except OSError:
        return True
assert fails(socket.create_connection, ("127.0.0.1", {os.getpid() % 1000 + 1}), 1)
assert [name for _, name in socket.if_nameindex()] == ["lo"]
assert not os.path.exists({str(tmp_path / "secret")!r})
assert not os.path.exists("/etc/passwd") and not os.path.exists("/home")
assert "TOKEN" not in os.environ
assert fails(open, "kernel.cu", "w") and fails(open, "results/recorded/x", "w") and fails(open, "/x", "w")
open("results/x", "w").write("made inside")
"""
    done = contained(project, "python", "-c", program, TOKEN="secret")
    assert done.returncode == 0, done.stderr
    assert (project / "results" / "x").read_text() == "made inside"
