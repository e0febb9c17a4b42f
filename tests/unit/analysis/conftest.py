"""The tables of the small campaign, read once per process."""

import pytest


@pytest.fixture(scope="session")
def recorded():
    """Returns the sgemm tables of the small campaign, as the analysis reads them."""
    from small_campaign import FOLDER
    from warplog.tables import view

    return view.load(FOLDER / "tables", "sgemm")
