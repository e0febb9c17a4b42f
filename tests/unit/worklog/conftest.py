"""The tables and the page of the small campaign, created once per process."""

import pytest


@pytest.fixture(scope="session")
def recorded():
    """Returns the sgemm tables of the small campaign, as figures and pages read them."""
    from worklog_pages import RECORDED

    from warplog.tables import view

    return view.load(RECORDED / "tables", "sgemm")


@pytest.fixture(scope="session")
def page(recorded):
    """Returns the worklog of the small campaign."""
    from worklog_pages import CAMPAIGN, CAPTIONS, FAMILY, PICTURES

    from warplog import worklog

    return worklog.gather(FAMILY, recorded, CAMPAIGN, PICTURES, CAPTIONS)
