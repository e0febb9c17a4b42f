"""What several unit tests look at and none changes, made once a process."""

import pytest


@pytest.fixture(scope="session")
def kept_builds(pytestconfig):
    """Where compiled variants are kept for the next run (sass_builds.py); `pytest --cache-clear` deletes them."""
    return pytestconfig.cache.mkdir("builds")


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A logged project (tracked_project.py); its path has characters that a URI would escape."""
    from tracked_project import logged

    return logged(tmp_path_factory.mktemp("a project") / "first")


@pytest.fixture(scope="session")
def recorded():
    """The first recorded campaign's tables of sgemm, as figures and pages read them."""
    from warplog.tables import view
    from worklog_pages import RECORDED

    return view.load(RECORDED / "tables", "sgemm")


@pytest.fixture(scope="session")
def good():
    """Made-up tables of sgemm in which all went well."""
    from figure_tables import sgemm

    return sgemm()


@pytest.fixture(scope="session")
def failed():
    """The same where three variants failed and one has no counters."""
    from drawn_figures import FAILED
    from figure_tables import sgemm

    return sgemm(FAILED, uncounted=("autotuned",))


@pytest.fixture(scope="session")
def page(recorded):
    """The worklog of the first recorded campaign."""
    from warplog import worklog
    from worklog_pages import CAMPAIGN, CAPTIONS, FAMILY, PICTURES

    return worklog.gather(FAMILY, recorded, CAMPAIGN, PICTURES, CAPTIONS)
