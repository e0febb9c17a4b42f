"""A logged project that no test changes, made once per process; folders in memory, since SQLite waits for a disk."""

import os
import tempfile
from pathlib import Path

import pytest

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@pytest.fixture
def tmp_path():
    with tempfile.TemporaryDirectory(prefix="warplog-", dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture(scope="session", autouse=True)
def _tables(mlflow_tables):
    pass


@pytest.fixture(scope="session")
def template():
    """Returns a logged project (tracked_project.py), whose path contains a character that URIs escape."""
    from tracked_project import logged

    with tempfile.TemporaryDirectory(prefix="warplog-", dir=MEMORY) as folder:
        yield logged(Path(folder) / "a project")


@pytest.fixture
def project(template, tmp_path):
    """A copy of it to change, in another folder."""
    from tracked_project import moved

    return moved(template, tmp_path / "moved here")
