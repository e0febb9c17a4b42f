"""Made-up tables that no test changes, created once per process."""

import pytest


@pytest.fixture(scope="session")
def good():
    """Returns made-up sgemm tables without failures."""
    from figure_tables import sgemm

    return sgemm()


@pytest.fixture(scope="session")
def failed():
    """Returns the same tables with failed variants (FAILED) and one without counters."""
    from drawn_figures import FAILED

    from figure_tables import sgemm

    return sgemm(FAILED, uncounted=("autotuned",))
