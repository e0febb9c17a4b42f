"""Made-up tables that no test changes, created once per process."""

import pytest


@pytest.fixture(scope="session")
def good():
    """Returns made-up sgemm tables without failures."""
    from figure_tables import sgemm

    return sgemm()


@pytest.fixture(autouse=True)
def coarse(request, monkeypatch):
    """Gives PNG files few pixels, unless a test asks for `sharp`: a quarter of the time is spent on pixels."""
    if "sharp" not in request.fixturenames:
        monkeypatch.setattr("warplog.figures.shared.style.PNG_DPI", 40)


@pytest.fixture
def sharp():
    """Leaves the pixels of PNG files as users get them."""


@pytest.fixture(scope="session")
def failed():
    """Returns the same tables with failed variants (FAILED) and one without counters."""
    from drawn_figures import FAILED

    from figure_tables import sgemm

    return sgemm(FAILED, uncounted=("autotuned",))


@pytest.fixture(scope="session")
def recorded():
    """Returns the sgemm tables of the small campaign, as figures and pages read them."""
    from small_campaign import FOLDER
    from warplog.tables import view

    return view.load(FOLDER / "tables", "sgemm")
