"""A logged project that no test changes, created once per process."""

import pytest


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """Returns a logged project (tracked_project.py), whose path contains a character that URIs escape."""
    from tracked_project import logged

    return logged(tmp_path_factory.mktemp("a project") / "first")
