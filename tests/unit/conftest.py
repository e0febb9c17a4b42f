"""Fixtures that several unit tests read and none changes, created once per process."""

import pytest


@pytest.fixture(scope="session")
def kept_builds(pytestconfig):
    """Returns the folder that keeps compiled variants for the next run (sass_builds.py, `pytest --cache-clear`)."""
    return pytestconfig.cache.mkdir("builds")


@pytest.fixture(scope="session")
def mlflow_tables():
    """Makes new MLflow stores in a hundredth of the time (mlflow_tables.py)."""
    from mlflow_tables import copy_tables

    copy_tables()
