"""Temporary folders: gone after use, and after a kill with the next one; those of living processes stay."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from warplog.core import files
from warplog.core.files import temporary_folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def other(place: Path) -> "tuple[subprocess.Popen[str], Path]":
    """Starts another process that has a temporary folder with a file; returns both, the folder an hour old."""
    code = (
        "import sys, time; from warplog.core.files import temporary_folder\n"
        "with temporary_folder() as f: (f / 'x').touch(); print(f, flush=True); time.sleep(600)"
    )
    env = os.environ | {"PYTHONPATH": str(Path(files.__file__).parents[2]), "TMPDIR": str(place)}
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=env)
    assert child.stdout is not None
    folder = Path(child.stdout.readline().strip())
    os.utime(folder, (time.time() - 3600,) * 2)
    return child, folder


def test_a_folder_is_private_and_gone_afterwards(place: Path) -> None:
    with temporary_folder() as folder:
        assert folder.parent == place
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "x").write_text("x")
    assert list(place.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_has_is_not(place: Path) -> None:
    child, folder = other(place)
    with temporary_folder():
        assert (folder / "x").exists()
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert folder.exists()
    with temporary_folder():
        assert not folder.exists()


def test_a_link_with_such_a_name_is_not_followed(place: Path) -> None:
    precious = place / "precious"
    precious.mkdir()
    os.utime(precious, (0, 0))
    (place / "warplog-temporary-x").symlink_to(precious)
    with temporary_folder():
        assert precious.is_dir()
