"""Fixtures that several unit tests read and none changes, created once per process."""

import pytest


@pytest.fixture(scope="session")
def kept_builds(pytestconfig):
    """Returns the folder that keeps compiled variants for the next run (sass_builds.py, `pytest --cache-clear`)."""
    return pytestconfig.cache.mkdir("builds")
